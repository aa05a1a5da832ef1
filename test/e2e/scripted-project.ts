import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createDirectory } from "./drover.ts";

export interface Turn {
  text?: string;
  tools?: { name: string; input: Record<string, unknown> }[];
}

/** A project whose agent `talker` takes these turns in order, across all runs of a session. */
export function createScriptedProject(
  turns: readonly Turn[],
  agent: Record<string, unknown> = {},
): { cwd: string; env: Record<string, string> } {
  const cwd = createDirectory();
  const write = (path: string, content: string): void => {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), content);
  };
  const config = { provider: "scripted", script: "scripts/talk.json" };
  write("profiles/model.json", JSON.stringify({ type: "model", agents_dir: "./agents/model", config }));
  write("agents/model/talker.json", JSON.stringify({ name: "talker", system_prompt: "You talk.", ...agent }));
  write("scripts/talk.json", JSON.stringify({ turns }));
  return { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } };
}

/** A tool call that ends when the file exists. */
export function createWaitCall(file: string): NonNullable<Turn["tools"]> {
  const command = `while ! [ -e '${file}' ]; do sleep 0.05; done`;
  return [{ name: "command.run", input: { command } }];
}
