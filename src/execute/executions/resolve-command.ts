import { isAbsolute, join } from "node:path";
import type { ListStyle } from "../../model/to-arguments.ts";
import type { Variables } from "../../model/expand-agent.ts";
import { buildArguments, findCommand } from "../executors/procedural/arguments.ts";

export type ResolvedCommand = { ok: true; executable: string; arguments: string[] } | { ok: false; message: string };

export interface ResolveOptions {
  /** Where a command's program is looked for first; PATH comes after it. */
  runnerDirectory: string;
  variables: Variables;
}

/** The command of an agent or a profile with its parameters as words, and where its program is. Never through a shell. */
export function resolveCommand(
  command: string,
  { runnerDirectory, variables }: ResolveOptions,
  parameters: Readonly<Record<string, unknown>> = {},
  listStyle: ListStyle = "comma",
): ResolvedCommand {
  const built = buildArguments(command, parameters, listStyle, variables);
  if (!built.ok)
    return {
      ok: false,
      message: built.faults
        .map(({ path, message }) => `${path === "" ? "" : `parameters${path} `}${message}`)
        .join("; "),
    };
  const [program, ...rest] = built.argv;
  const seen = findCommand(program, runnerDirectory, variables.env["PATH"]);
  // what is not there is named as it was looked for: the start then says what is wrong with it
  const missing = program.includes("/") && !isAbsolute(program) ? join(runnerDirectory, program) : program;
  return { ok: true, executable: "found" in seen ? seen.found : missing, arguments: rest };
}
