import { dirname } from "node:path";
import type { LoadedAgent } from "../define/load-agents.ts";
import { findCommand } from "../execute/executors/procedural/arguments.ts";
import type { Environment } from "../model/environment.ts";
import { splitWords } from "../model/split-words.ts";
import { quoteForShell } from "./shell-quote.ts";

/**
 * Returns a warning about a procedural agent whose program cannot be run on this machine. It is not an error, because the
 * runner may be on another machine. `directories` are those of the runners that may offer the agent.
 */
export function findProgramWarning(
  { agent, file }: LoadedAgent,
  directories: string[],
  env: Environment,
): string | null {
  const words = agent.type === "procedural" && agent.command ? splitWords(agent.command) : null;
  const program = words?.ok ? words.words[0] : undefined;
  if (program === undefined || program.includes("$")) return null;
  const lookups = [...directories, ...listParents(file)].map((directory) =>
    findCommand(program, directory, env["PATH"]),
  );
  if (lookups.some((lookup) => "found" in lookup)) return null;
  const isNotExecutable = lookups.some((lookup) => "missing" in lookup && lookup.missing === "not_executable");
  if (isNotExecutable) return `${agent.name}: ${program} is not executable (chmod +x ${quoteForShell(program)})`;
  const problem = program.includes("/") ? "does not exist" : "is neither in the project nor on PATH";
  return `${agent.name}: ${program} ${problem}`;
}

/** Lists the directories above the agent file. The runner's directory is usually one of them. */
function listParents(file: string): string[] {
  const parent = dirname(file);
  return parent === file ? [] : [parent, ...listParents(parent)];
}
