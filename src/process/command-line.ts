import { RequestError } from "../model/errors.ts";
import { splitWords } from "../model/split-words.ts";

export interface ParsedCommandLine {
  executable: string;
  arguments: string[];
  shell: boolean;
}

/**
 * Parses a command line. Plain and quoted words run without a shell; shell syntax runs in /bin/sh. With `useShell` false,
 * the text is always split into words.
 */
export function parseCommandLine(
  text: string,
  useShell: "auto" | boolean,
  { isOnPath }: { isOnPath: (name: string) => boolean },
): ParsedCommandLine {
  if (text.trim() === "") throw emptyCommand();
  if (useShell === true) return toShellCommand(text);
  if (useShell === "auto" && needsShell.test(text.trim())) return toShellCommand(text);
  const split = splitWords(text);
  if (!split.ok) {
    if (useShell === "auto") return toShellCommand(text); // The shell itself reports the unclosed quote.
    throw new RequestError({
      code: "DROVER-USE-001",
      message: `The command cannot be split into words: ${split.problem}.`,
      field: "command",
      next: "Close the quote, or pass the arguments separately after --.",
    });
  }
  const [executable, ...args] = split.words;
  if (executable === undefined || executable === "") throw emptyCommand();
  if (useShell === "auto" && builtins.has(executable) && !isOnPath(executable)) return toShellCommand(text);
  return { executable, arguments: args, shell: false };
}

/** Shell metacharacters, even inside quotes, where "$x" is expanded too; or a leading K=V. */
const needsShell = /[|&;<>()$`*?[!#~\\\n]|^[A-Za-z_][A-Za-z0-9_]*=/;

function toShellCommand(text: string): ParsedCommandLine {
  return { executable: "/bin/sh", arguments: ["-c", text], shell: true };
}

function emptyCommand(): RequestError {
  return new RequestError({
    code: "DROVER-USE-002",
    message: "The command is empty.",
    field: "command",
    next: 'Specify a program to run, for example: drover exec "echo hello".',
  });
}

/** Shell builtins and reserved words. Builtins that also exist as programs (echo, test) run as programs. */
const builtins = new Set(
  (
    ". : [ alias bg bind break builtin case cd command continue declare do done echo elif else esac eval exec exit export false fc fg fi for " +
    "function getopts hash if in jobs kill let local printf pwd read readonly return select set shift source test then time times trap true " +
    "type typeset ulimit umask unalias unset until wait while { }"
  ).split(" "),
);
