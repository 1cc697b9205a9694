/** Taking part in a session from another process: the session's process serves its control over a private socket. */

export {
  ConnectError,
  type ConnectedControl,
  type ConnectionEnd,
  type ConnectOptions,
  connectControl,
} from "./connect.ts";
export type { SessionAbout } from "./frames.ts";
export { listRunning, type RunningSession } from "./running.ts";
export { type ServedControl, type ServeOptions, serveControl } from "./serve.ts";
export { findSockets, type SocketPlace } from "./sockets.ts";
