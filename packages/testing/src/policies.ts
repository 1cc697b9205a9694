/** Policies and contexts for tests of the guard. */

import {
  classify,
  type Decision,
  decide,
  type GuardContext,
  type LayerSettings,
  mergeLayers,
  type PermissionFlags,
  type Policy,
  settingsOfFlags,
  splitCommands,
} from "@prefork/guard";

export const ROOT = "/work/project";
export const HOME = "/home/ann";
export const place = { base: ROOT, home: HOME };

export const layerOf = (flags: PermissionFlags): LayerSettings => {
  const settings = settingsOfFlags(flags, place);
  if (typeof settings === "string") throw new Error(settings);
  return settings;
};

export const policyOf = (flags: PermissionFlags): Policy => mergeLayers([layerOf(flags)]);

export const contextOf = (flags: PermissionFlags = {}, changed: Partial<GuardContext> = {}): GuardContext => {
  const policy = policyOf(flags);
  return {
    mode: policy.mode,
    policy,
    roots: [ROOT],
    home: HOME,
    classify,
    partsOf: splitCommands,
    asks: "person",
    ...changed,
  };
};

export const decideBash = (command: string, context: GuardContext): Decision =>
  decide({ tool: "Bash", args: { command } }, context);
