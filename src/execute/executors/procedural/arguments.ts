import { type ArgumentFault, type ListStyle, toArguments } from "../../../model/to-arguments.ts";
import { describeVariableFault, expandText, type Variables } from "../../../model/expand-agent.ts";
import { splitWords } from "../../../model/split-words.ts";
import { findExecutable, type Lookup } from "../../../process/find-executable.ts";

export type Argv = { ok: true; argv: [executable: string, ...rest: string[]] } | { ok: false; faults: ArgumentFault[] };

/** Returns the command's own words, then the parameters as options. No shell is involved. */
export function buildArguments(
  command: string,
  parameters: Readonly<Record<string, unknown>>,
  listStyle: ListStyle,
  variables: Variables = { allowed: [], env: {} },
): Argv {
  const split = splitWords(command);
  if (!split.ok) return { ok: false, faults: [{ path: "", message: `the command is not valid: ${split.problem}` }] };
  if (!split.words[0]) return { ok: false, faults: [{ path: "", message: "the command names no program" }] };
  // expanded word by word, so that a value with a space or a quote stays one argument
  const expanded = split.words.map((word) => expandText(word, "command", variables));
  const { arguments: options, faults } = toArguments(parameters, listStyle);
  const all = [
    ...expanded.flatMap(({ faults: found }) =>
      found.map((fault) => ({ path: "", message: describeVariableFault(fault) })),
    ),
    ...faults,
  ];
  if (all.length > 0) return { ok: false, faults: all };
  const [first, ...rest] = expanded.map(({ text }) => text);
  return { ok: true, argv: [first!, ...rest, ...options] };
}

/** Resolves a path relative to the runner's directory. Searches PATH for a bare name that is not there. */
export function findCommand(executable: string, directory: string, path: string | undefined): Lookup {
  if (!executable.includes("/")) {
    const own = findExecutable(`./${executable}`, path, directory);
    if ("found" in own) return own;
  }
  return findExecutable(executable, path, directory);
}
