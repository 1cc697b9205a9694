/** The settings of a session, read from the files they are in. */

export {
  type LoadedSettings,
  loadSettings,
  type ProjectRules,
  projectRules,
  type ServersInFile,
  type SettingsLocations,
  type TerminalSettings,
} from "./settings-files.ts";
