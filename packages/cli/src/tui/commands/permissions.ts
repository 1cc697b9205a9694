/** /permissions: which rules apply, where each is written, and how to add or remove one.
 *  Invariant: the guard's own parser judges every rule; a rule of a project is shown and not changed here, because the project
 *  owns its files; a session rule ends with the session.
 *  Elsewhere: what rules mean (docs/permissions.md, @prefork/guard), the settings file (`prefork config`). */

import { homedir } from "node:os";
import { join } from "node:path";
import { parseRule, type Rule, type RuleList } from "@prefork/guard";
import type { Session } from "@prefork/runtime";
import type { TerminalContext } from "../context.ts";
import { type ListItem, safeLine } from "../state/index.ts";
import {
  type ArgumentChoice,
  changeByCli,
  notice,
  openList,
  ownSession,
  type SlashCommand,
  typeNext,
} from "./command.ts";

const LISTS: readonly RuleList[] = ["deny", "ask", "allow"];
const ABOUT: Readonly<Record<RuleList, string>> = {
  deny: "is always refused",
  ask: "is always asked about",
  allow: "runs without a question",
};
const FORMS = "Forms: Bash(npm test), Bash(git log:*), Read(~/notes/**), Edit(src/**), mcp__server__tool";

/** Rules that were added while the session runs. */
const isOfSession = ({ origin }: Rule): boolean => origin === "your answer" || origin === "this session";

const userFile = ({ io: { env } }: TerminalContext): string => join(env.HOME || homedir(), ".prefork", "settings.json");

const sourceOf = (rule: Rule, context: TerminalContext): string => {
  if (rule.origin === userFile(context)) return "your settings";
  const { cwd } = context.state();
  return safeLine(rule.origin.startsWith(`${cwd}/`) ? rule.origin.slice(cwd.length + 1) : rule.origin, 80);
};

const ruleItem = (rule: Rule, context: TerminalContext): ListItem => ({
  id: `rule ${rule.list} ${rule.origin}\n${rule.text}`,
  label: `${rule.list.padEnd(5)} ${safeLine(rule.text, 200)}`,
  detail: sourceOf(rule, context),
  preview: `${safeLine(rule.text, 400)} ${ABOUT[rule.list]}.\nWritten in: ${safeLine(rule.origin)}`,
});

const allRules = (own: Session): readonly Rule[] => {
  const policy = own.setup.policy();
  return LISTS.flatMap((list) => policy[list]);
};

const openRules = async (context: TerminalContext): Promise<void> => {
  const own = await ownSession(context);
  const policy = own.setup.policy();
  const adding = LISTS.toReversed().map((list) => ({
    id: `add ${list}`,
    label: `Add a rule: what ${ABOUT[list]}`,
    preview: `${FORMS}\nThe rule applies to this session. Add "always" for your own settings: /permissions always ${list} …`,
  }));
  openList(context, {
    title: `Permissions · mode ${policy.mode === own.mode ? own.mode : `${own.mode} (settings: ${policy.mode})`}, sandbox ${policy.sandbox}`,
    command: "permissions",
    hint: "changes it",
    items: [...allRules(own).map((rule) => ruleItem(rule, context)), ...adding],
  });
};

const findRule = (own: Session, id: string): Rule | undefined =>
  allRules(own).find((rule) => id === `rule ${rule.list} ${rule.origin}\n${rule.text}`);

const whyFixed = ({ text, origin }: Rule): string =>
  origin.startsWith("/")
    ? `${safeLine(text)} is written in ${safeLine(origin)}. Change it there, then look at the change with: prefork trust`
    : `${safeLine(text)} belongs to ${safeLine(origin)} and cannot be changed while the session runs.`;

const chooseRule = (rule: Rule, context: TerminalContext): void => {
  const isOwn = rule.origin === userFile(context);
  if (!isOwn && !isOfSession(rule)) throw new Error(whyFixed(rule));
  openList(context, {
    title: safeLine(rule.text, 200),
    command: "permissions",
    hint: "does it",
    items: [
      {
        id: `remove ${rule.list} ${rule.origin}\n${rule.text}`,
        label: isOwn ? "Remove it from your settings" : "Remove it from this session",
        preview: `What it matches ${ABOUT[rule.list]} now.`,
      },
      { id: "nothing", label: "Keep it" },
    ],
  });
};

/** The list as the user's own file has it. */
const userRules = async (list: RuleList, context: TerminalContext): Promise<readonly string[]> => {
  const { text } = await context.runCli(["config", "get", `permissions.${list}`, "--json"]);
  for (const line of text.split("\n")) {
    const found = parseJson(line);
    if (found?.layer === "user" && Array.isArray(found.value))
      return found.value.filter((rule): rule is string => typeof rule === "string");
  }
  return [];
};

const parseJson = (line: string): { readonly layer?: unknown; readonly value?: unknown } | undefined => {
  try {
    return JSON.parse(line) as { readonly layer?: unknown; readonly value?: unknown };
  } catch {
    return undefined;
  }
};

const saveUserRules = (list: RuleList, rules: readonly string[], context: TerminalContext): Promise<void> =>
  changeByCli(
    context,
    rules.length === 0
      ? ["config", "unset", `permissions.${list}`]
      : ["config", "set", `permissions.${list}`, JSON.stringify(rules)],
  );

const removeRule = async (rule: Rule, own: Session, context: TerminalContext): Promise<void> => {
  const { list, text } = rule;
  if (isOfSession(rule)) {
    if (own.setup.removeRule(list, text)) notice(context, `Removed from this session: ${list} ${safeLine(text)}`);
    return;
  }
  const rules = await userRules(list, context);
  await saveUserRules(
    list,
    rules.filter((one) => one !== text),
    context,
  );
  notice(context, "Sessions that start from now on follow the change; this one keeps the rules it started with.");
};

const addRule = async (given: string, context: TerminalContext): Promise<void> => {
  const [, always, list, text = ""] = /^(always\s+)?(allow|ask|deny)(?:\s+([\s\S]*))?$/.exec(given) ?? [];
  if (list !== "allow" && list !== "ask" && list !== "deny")
    throw new Error(
      "Write /permissions allow Bash(npm test), with allow, ask or deny. /permissions alone lists all rules.",
    );
  const rule = text.trim();
  if (rule === "") throw new Error(`Write the rule after "${list}". ${FORMS}`);
  const own = await ownSession(context);
  if (always !== undefined) {
    // In your own file a path starts at your home folder, in a session at the working folder.
    if (/^(?:Read|Edit|Write)\((?!~\/|\/)/.test(rule))
      throw new Error(`Your settings apply in every folder: write the path from ~/ or from /, as in Read(~/notes/**).`);
    const home = context.io.env.HOME || homedir();
    const read = parseRule(rule, { base: home, home, list, origin: userFile(context), tools: "any" });
    if (read.kind === "wrong") throw new Error(safeLine(read.reason, 500));
    const before = await userRules(list, context);
    if (!before.includes(rule)) await saveUserRules(list, [...before, rule], context);
  }
  own.setup.addRule(list, rule);
  if (always === undefined)
    notice(context, `Added for this session: ${list} ${safeLine(rule)}. It applies from the next call on.`);
};

const permissions: SlashCommand = {
  name: "permissions",
  args: "[[always] allow|ask|deny <rule>]",
  summary: "the rules that apply and where they are written; add or remove one",
  group: "Set up",
  complete: (_context, typed): readonly ArgumentChoice[] =>
    /\s/.test(typed)
      ? []
      : [
          ...LISTS.toReversed().map((list) => ({ value: list, about: `a rule: what ${ABOUT[list]}` })),
          { value: "always", about: "then allow, ask or deny: writes the rule to your settings" },
        ],
  run: (args, context) => (args.trim() === "" ? openRules(context) : addRule(args.trim(), context)),
  chosen: async (id, context) => {
    if (id.startsWith("add ")) return typeNext(context, `/permissions ${id.slice("add ".length)} `);
    const own = await ownSession(context);
    const rule = findRule(own, id.replace(/^remove /, "rule "));
    if (!rule) return undefined;
    return id.startsWith("remove ") ? removeRule(rule, own, context) : chooseRule(rule, context);
  },
};

export const permissionCommands: readonly SlashCommand[] = [permissions];
