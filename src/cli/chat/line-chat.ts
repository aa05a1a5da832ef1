import { createInterface } from "node:readline";
import type { StoredEvent } from "../../model/event.ts";
import type { Run } from "../../model/run.ts";
import { isTerminal, write, writeContent } from "../io.ts";
import { toJsonLine } from "../json-line.ts";
import { createStyle } from "../terminal/style.ts";
import type { Conversation } from "./conversation.ts";
import { createTurnView } from "./turn-view.ts";

export interface LineChatOptions {
  json: boolean;
  quiet: boolean;
}

/**
 * Sends each line of stdin as a message and prints each answer to stdout. Stops at the first turn that does not complete,
 * because later messages would refer to an answer that is missing.
 */
export async function runLineChat(conversation: Conversation, options: LineChatOptions): Promise<number> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  process.on("SIGINT", () => {
    if (conversation.run_id === null) process.exit(130);
    void conversation.stop();
    process.once("SIGINT", () => process.exit(130));
  });
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const run = await runTurn(conversation, line, options);
    if (run.status !== "completed") return run.status === "cancelled" ? 130 : 1;
  }
  return 0;
}

async function runTurn(conversation: Conversation, line: string, { json, quiet }: LineChatOptions): Promise<Run> {
  if (json) {
    const run = await conversation.runTurn(line, {
      onStart: () => undefined,
      onPartial: () => undefined,
      onEvent: writeEvent,
    });
    write(1, toJsonLine({ run }));
    return run;
  }
  let lastMessage = "";
  const print = (text: string): void => (quiet ? undefined : write(2, text));
  const view = createTurnView({ print, columns: () => 120, style: createStyle(false) });
  const run = await conversation.runTurn(line, {
    onStart: () => undefined,
    onPartial: () => undefined,
    onEvent(stored) {
      if (stored.event.type !== "assistant") return view.showEvent(stored);
      lastMessage = stored.event.text;
      writeContent(`${lastMessage.trimEnd()}\n`);
    },
  });
  // If the executor reports no messages, the answer is only in the result.
  if (lastMessage.trim() === "" && run.result_text) writeContent(`${run.result_text.trimEnd()}\n`);
  // The answer is already on stdout.
  view.end({ ...run, result_text: null });
  if (isTerminal(1)) write(1, "\n");
  return run;
}

function writeEvent(stored: StoredEvent): void {
  write(1, toJsonLine(stored));
}
