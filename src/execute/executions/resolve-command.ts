import { isAbsolute, join } from "node:path";
import type { ListStyle } from "../../model/to-arguments.ts";
import type { Variables } from "../../model/expand-agent.ts";
import { buildArguments, findCommand } from "../executors/procedural/arguments.ts";

export type ResolvedCommand = { ok: true; executable: string; arguments: string[] } | { ok: false; message: string };

export interface ResolveOptions {
  /** Searched for the program before PATH. */
  runnerDirectory: string;
  variables: Variables;
}

/** Turns a command and its parameters into argv, and finds its program. Never uses a shell. */
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
  const search = findCommand(program, runnerDirectory, variables.env["PATH"]);
  // if the program is missing, return the path that was searched: starting it reports the error
  const missing = program.includes("/") && !isAbsolute(program) ? join(runnerDirectory, program) : program;
  return { ok: true, executable: "found" in search ? search.found : missing, arguments: rest };
}
