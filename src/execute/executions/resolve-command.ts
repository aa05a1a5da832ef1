import { isAbsolute, join } from "node:path";
import type { ListStyle } from "../../model/to-arguments.ts";
import type { Variables } from "../../model/expand-agent.ts";
import { buildArguments, findCommand } from "../executors/procedural/arguments.ts";

export type ResolvedCommand =
  | {
      ok: true;
      executable: string;
      arguments: string[];
      /** Says where Drover looked for the program and what to do. null if it was found. */
      notFoundMessage: string | null;
    }
  | { ok: false; message: string };

export interface ResolveOptions {
  /** The directory that is searched for the program before PATH. */
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
  if ("found" in search) return { ok: true, executable: search.found, arguments: rest, notFoundMessage: null };
  // Return the path where the program should be: starting it reports the error.
  const executable = program.includes("/") && !isAbsolute(program) ? join(runnerDirectory, program) : program;
  return { ok: true, executable, arguments: rest, notFoundMessage: describeNotFound(program, runnerDirectory) };
}

function describeNotFound(program: string, runnerDirectory: string): string {
  if (isAbsolute(program)) return `Command not found: ${program}. The file does not exist: correct the path.`;
  if (!program.includes("/"))
    return `Command not found: ${program}. It is neither in the runner's directory, ${runnerDirectory}, nor on PATH. Check the spelling, or install it.`;
  return `Command not found: ${program}. The path is relative to the runner's directory, ${runnerDirectory}, which does not have this file. Correct the path, or offer the agent from the project that has the file: move the agent to agents/tools/ and add profiles/tools.json with {"type": "procedural", "agents_dir": "./agents/tools"}. See docs/profiles.md.`;
}
