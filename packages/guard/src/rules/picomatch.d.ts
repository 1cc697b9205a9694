/** The part of picomatch that path and tool patterns use; the package brings no types of its own. */

declare module "picomatch" {
  type PicomatchOptions = {
    readonly dot?: boolean;
    readonly nobracket?: boolean;
    readonly nocase?: boolean;
    readonly noextglob?: boolean;
    readonly nonegate?: boolean;
    readonly strictSlashes?: boolean;
  };
  const picomatch: (glob: string, options?: PicomatchOptions) => (text: string) => boolean;
  export = picomatch;
}
