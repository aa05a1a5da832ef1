import { commands } from "./commands.ts";
import { formatColumns, formatWrappedColumns } from "./help.ts";
import { write } from "./io.ts";
import { withDroverCommand } from "./drover-command.ts";

/** The sections of the overview, each with the first words of its commands. All other commands are listed under "More". */
const sections: readonly (readonly [title: string, firstWords: readonly string[]])[] = [
  ["Start", ["init", "up", "status", "ui", "doctor", "completions", "trust"]],
  ["Run", ["run", "exec", "chat", "agent-executor"]],
  ["Inspect and control", ["runs", "questions", "sessions", "usage"]],
  ["Define", ["agents", "schedules", "hooks", "webhooks"]],
  ["Operate", ["coordinator", "runner", "runners", "tokens", "state", "backup", "restore", "migrate", "audit"]],
];

export function showOverview(): void {
  const overview = [
    "Drover runs any agent, anywhere, on the record.",
    "",
    "Try",
    ...formatColumns([
      ['drover exec "echo hello"', "# run a command"],
      ["drover runs list", "# see its record"],
      ["drover audit verify", "# prove that it has not been changed since"],
    ]),
    ...listSections(),
    "",
    "Run `drover help COMMAND` for details, `drover --version` for the version.",
    "",
  ].join("\n");
  write(1, withDroverCommand(overview));
}

/** Prints the commands of a group such as `runs`. */
export function showGroup(group: string, names: readonly string[], fd: 1 | 2): void {
  const list = [
    `drover ${group} COMMAND`,
    "",
    "Commands",
    ...formatWrappedColumns(names.map((name): [string, string] => [`drover ${name}`, commands[name]![0]])),
    "",
    `Run \`drover help ${group} COMMAND\` for details.`,
    "",
  ].join("\n");
  write(fd, withDroverCommand(list));
}

function listSections(): string[] {
  const getFirstWord = (name: string): string => name.split(" ")[0]!;
  const names = Object.keys(commands);
  const listedWords = new Set(sections.flatMap(([, words]) => words));
  const otherWords = new Set(names.map(getFirstWord).filter((word) => !listedWords.has(word)));
  const width = Math.max(...names.map((name) => name.length));
  return [...sections, ["More", [...otherWords]] as const].flatMap(([title, words]) => [
    "",
    title,
    ...formatWrappedColumns(
      words
        .flatMap((word) => names.filter((name) => getFirstWord(name) === word))
        .map((name): [string, string] => [name.padEnd(width), commands[name]![0]]),
    ),
  ]);
}
