import { type ArgumentFault, type ListStyle, toArguments } from "../../../model/to-arguments.ts";
import { describeVariableFault, expandText, type Variables } from "../../../model/expand-agent.ts";
import { splitWords } from "../../../model/split-words.ts";
import { findExecutable, type Lookup } from "../../../process/find-executable.ts";

export type Argv = { ok: true; argv: [executable: string, ...rest: string[]] } | { ok: false; faults: ArgumentFault[] };

/** Returns the words of the command, followed by the parameters as options. No shell is involved. */
export function buildArguments(
  command: string,
  parameters: Readonly<Record<string, unknown>>,
  listStyle: ListStyle,
  variables: Variables = { allowed: [], env: {} },
): Argv {
  const split = splitWords(command);
  if (!split.ok) return { ok: false, faults: [{ path: "", message: `the command is invalid: ${split.problem}` }] };
  if (!split.words[0]) return { ok: false, faults: [{ path: "", message: "the command is empty" }] };
  // Expand each word separately, so that a value with a space or a quote stays one argument.
  const expandedWords = split.words.map((word) => expandText(word, "command", variables));
  const { arguments: options, faults } = toArguments(parameters, listStyle);
  const allFaults = [
    ...expandedWords.flatMap(({ faults: variableFaults }) =>
      variableFaults.map((fault) => ({ path: "", message: describeVariableFault(fault) })),
    ),
    ...faults,
  ];
  if (allFaults.length > 0) return { ok: false, faults: allFaults };
  const [first, ...rest] = expandedWords.map(({ text }) => text);
  return { ok: true, argv: [first!, ...rest, ...options] };
}

/** Resolves the executable relative to the runner's directory. If a bare name is not found there, searches PATH. */
export function findCommand(executable: string, directory: string, path: string | undefined): Lookup {
  if (!executable.includes("/")) {
    const inDirectory = findExecutable(`./${executable}`, path, directory);
    if ("found" in inDirectory) return inDirectory;
  }
  return findExecutable(executable, path, directory);
}
