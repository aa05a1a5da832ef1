import type { RunEvent, StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { Environment } from "../model/environment.ts";
import type { ApiClient } from "../wire/client.ts";
import { draw } from "./io.ts";
import { createQuestionPrompt } from "./question-prompt.ts";
import { type Keyboard, openKeyboard } from "./terminal/keys.ts";
import { createScreen } from "./terminal/screen.ts";
import { createStyleFor } from "./terminal/style.ts";

/** Asks the questions of a run at the terminal of the command that follows it. */
export interface TerminalQuestions {
  /** Pass every event of the run. */
  onEvent(stored: StoredEvent): void;
  /** Writes other output above the question. */
  writeAbove(write: () => void): void;
  close(): void;
}

export function askAtTerminal(
  { questions }: Pick<ApiClient, "questions">,
  { run_id, agent_name }: Run,
  env: Environment,
): TerminalQuestions {
  const getSize = () => ({ columns: Math.max(process.stderr.columns || 80, 20), rows: process.stderr.rows || 24 });
  const print = (text: string): void => draw(2, text);
  const screen = createScreen(print, getSize);
  let keyboard: Keyboard | null = null;
  /** Questions that the coordinator has closed. The event after theirs says why. */
  const superseded: Extract<RunEvent, { type: "permission_decision" }>[] = [];
  const questionPrompt = createQuestionPrompt({
    agent: agent_name,
    answer: ({ request_id }, decision) => questions.answer(run_id, request_id, decision),
    print: (line) => screen.print(`${line}\n`),
    onChange: refresh,
    style: createStyleFor(2, env),
  });
  process.stderr.on("resize", refresh);

  /** Reads single keys only while a question is open. Otherwise the terminal handles Ctrl-C and line editing. */
  function refresh(): void {
    if (questionPrompt.isAsking && !keyboard)
      keyboard = openKeyboard(process.stdin, print, (key) => {
        if (key.name === "interrupt") process.kill(process.pid, "SIGINT");
        else questionPrompt.handle(key);
      });
    screen.setLiveArea(questionPrompt.show(getSize().columns) ?? { rows: [], cursor: null });
    if (!questionPrompt.isAsking) closeKeyboard();
  }

  function closeKeyboard(): void {
    keyboard?.close();
    keyboard = null;
  }

  return {
    onEvent({ event }) {
      if (event.type === "permission_decision" && event.decision === "superseded") {
        superseded.push(event);
        return;
      }
      const isStopped = (event.type === "status" && event.status === "stopping") || event.type === "result";
      for (const closed of superseded.splice(0)) questionPrompt.onDecision(closed, isStopped);
      if (event.type === "permission_request") questionPrompt.ask({ run_id, ...event });
      else if (event.type === "permission_decision") questionPrompt.onDecision(event);
    },
    writeAbove: (write) => screen.writeAbove(write),
    close() {
      questionPrompt.clear();
      process.stderr.off("resize", refresh);
      screen.close();
      closeKeyboard();
    },
  };
}
