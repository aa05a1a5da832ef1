import type { StoredEvent } from "../model/event.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { draw } from "./io.ts";
import { createQuestionPrompt } from "./question-prompt.ts";
import { type Keyboard, openKeyboard } from "./terminal/keys.ts";
import { createScreen } from "./terminal/screen.ts";
import { styleOf } from "./terminal/style.ts";

/** Asks the questions of a run at the terminal of the command that waits for it. */
export interface TerminalQuestions {
  event(stored: StoredEvent): void;
  /** What else is written to the terminal meanwhile goes above the question. */
  aside(writeThere: () => void): void;
  close(): void;
}

export function askAtTerminal(
  { questions }: Pick<ApiClient, "questions">,
  { run_id, agent_name }: Run,
  env: Readonly<Record<string, string | undefined>>,
): TerminalQuestions {
  const size = () => ({ columns: Math.max(process.stderr.columns || 80, 20), rows: process.stderr.rows || 24 });
  const print = (text: string): void => draw(2, text);
  const screen = createScreen(print, size);
  let keyboard: Keyboard | null = null;
  const questionPrompt = createQuestionPrompt({
    agent: agent_name,
    answer: ({ request_id }, decision) => questions.answer(run_id, request_id, decision),
    tell: (line) => screen.print(`${line}\n`),
    changed: refresh,
    style: styleOf(2, env),
  });
  process.stderr.on("resize", refresh);

  /** The keyboard is read key by key only while there is something to answer: otherwise Ctrl-C and the rest are the terminal's. */
  function refresh(): void {
    if (questionPrompt.isAsking && !keyboard)
      keyboard = openKeyboard(process.stdin, print, (key) => {
        if (key.name === "interrupt") process.kill(process.pid, "SIGINT");
        else questionPrompt.handle(key);
      });
    screen.setLive(questionPrompt.show(size().columns) ?? { rows: [], cursor: null });
    if (!questionPrompt.isAsking) release();
  }

  function release(): void {
    keyboard?.close();
    keyboard = null;
  }

  return {
    event({ event }) {
      if (event.type === "permission_request") questionPrompt.ask({ run_id, ...event });
      else if (event.type === "permission_decision") questionPrompt.decided(event);
    },
    aside: (writeThere) => screen.aside(writeThere),
    close() {
      questionPrompt.clear();
      process.stderr.off("resize", refresh);
      screen.close();
      release();
    },
  };
}
