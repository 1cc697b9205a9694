/** Carries out what the state asks for: prompts, answers, stops, commands.
 *  Invariant: a failure becomes a message on the screen and never ends the program; nothing here decides what a key means;
 *  what only some effects need is loaded with them, because the first frame waits for this file.
 *  Elsewhere: the effects as data (state: state.ts), the slash commands (commands/). */

import type { TerminalContext } from "./context.ts";
import { FIRST_SESSION, NEW_SESSION } from "./first-session.ts";
import type { Effect } from "./state/index.ts";
import { safeLine, safeText } from "./state/index.ts";

export const runEffect = async (effect: Effect, context: TerminalContext): Promise<void> => {
  try {
    await carryOut(effect, context);
  } catch (error) {
    const text = safeText(error instanceof Error ? error.message : String(error));
    context.dispatch({ type: "printed", block: { kind: "notice", level: "error", text } });
  }
};

const carryOut = async (effect: Effect, context: TerminalContext): Promise<void> => {
  const { dispatch, screen } = context;
  switch (effect.kind) {
    case "prompt": {
      context.remember(effect.text);
      const { control } = await context.session();
      try {
        await control.prompt(screen.promptOf(effect.text), { tasks: "leave" });
      } catch (error) {
        if (screen.input.facts.isEmpty) screen.input.setText(effect.text); // nothing that was typed is lost
        throw error;
      }
      return;
    }
    case "steer":
      return (await context.session()).control.steer(effect.text, effect.child);
    case "stop":
      return (await context.session()).control.stop(effect.child);
    case "background":
      return (await context.session()).control.background(effect.child);
    case "answer":
      return (await import("./answer-question.ts")).answerQuestion(effect, context);
    case "trust":
      return context.answerTrust(effect.choice);
    case "mode": {
      const { setMode } = await context.session();
      if (setMode) setMode(effect.mode);
      else dispatch({ type: "hinted", text: "The mode belongs to the terminal that runs the session." });
      return;
    }
    case "command":
      if (effect.typed !== undefined) context.remember(effect.typed);
      return (await import("./commands/index.ts")).runCommand(effect.name, effect.args, context);
    case "chosen":
      if (effect.command === FIRST_SESSION)
        return context.chooseFirst(effect.id === NEW_SESSION ? undefined : effect.id);
      return (await import("./commands/index.ts")).runChosen(effect.command, effect.id, context);
    case "shell":
      context.remember(`!${effect.command}`);
      return (await import("./shell-line.ts")).runShellLine(effect.command, context);
    case "remember":
      context.remember(`# ${effect.text}`);
      return (await import("./remember.ts")).rememberText(effect.text, context);
    case "edit":
      return (await import("./external-editor.ts")).runEditor(context);
    case "cancel":
      return context.cancel();
    case "type":
      screen.input.setText(effect.text);
      return screen.draw();
    case "redraw":
      return screen.redraw();
    case "suspend":
      return context.suspend();
    case "notify":
      return context.notify(effect.text);
    case "refresh":
      return context.refresh(effect.isMoneyToo);
    case "showConversation": {
      const { control } = await context.session();
      const text = "The conversation continues from another point. Up to there:";
      const said = await context.explain.conversation(control.session);
      dispatch({ type: "conversationChanged", blocks: [{ kind: "notice", level: "info", text }, ...said] });
      return;
    }
    case "explainFamily":
      return dispatch({
        type: "familyExplained",
        family: effect.family,
        ...(await context.explain.family(effect.family)),
      });
    case "explainMiss": {
      const cause = await context.explain.lastMiss(effect.agent);
      if (cause !== undefined) dispatch({ type: "missExplained", agent: effect.agent, cause: safeLine(cause) });
      return;
    }
    case "quit":
      return context.quit();
  }
};
