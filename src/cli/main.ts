import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { commands, defaultCommands } from "./commands.ts";
import { write } from "./io.ts";
import { reportError } from "./report-error.ts";
import { runCommand } from "./run-command.ts";

declare const DROVER_VERSION: string;

export async function main(argv: readonly string[]): Promise<void> {
  try {
    await dispatch(argv);
  } catch (error) {
    process.exit(reportError(error, argv.includes("--json")));
  }
}

async function dispatch(argv: readonly string[]): Promise<void> {
  const [first = "", second = ""] = argv;
  if (first === "--version" || first === "-v") return write(1, `${DROVER_VERSION}\n`);
  if (first === "" || first === "--help" || first === "-h") return showOverview();
  if (first === "__complete") return (await import("./completion/complete.ts")).complete(argv.slice(1));
  if (first === "help") return showHelpFor(argv.slice(1));
  for (const wordCount of [2, 1]) {
    const name = argv.slice(0, wordCount).join(" ");
    if (Object.hasOwn(commands, name)) return runCommand(await commands[name]![1](), argv.slice(wordCount));
  }
  const names = Object.keys(commands).filter((name) => name.startsWith(`${first} `));
  if (names.length === 0) throw unknownCommand(first);
  if (second !== "" && !second.startsWith("-")) throw unknownInGroup(first, second, names);
  const wantsHelp = second === "--help" || second === "-h";
  const defaultCommand = defaultCommands[first];
  if (defaultCommand && !wantsHelp) return runCommand(await commands[defaultCommand]![1](), argv.slice(1));
  const { showGroup } = await import("./overview.ts");
  showGroup(first, names, wantsHelp ? 1 : 2);
  if (!wantsHelp) process.exit(2);
}

/** Prints what `COMMAND --help` prints. Words after `--` are ignored: they would hide the `--help` from the command. */
async function showHelpFor(words: readonly string[]): Promise<void> {
  const names = words.slice(0, words.includes("--") ? words.indexOf("--") : undefined);
  return names.length === 0 || names[0] === "help" ? showOverview() : dispatch([...names, "--help"]);
}

async function showOverview(): Promise<void> {
  const overview = await import("./overview.ts");
  overview.showOverview();
}

function unknownInGroup(first: string, second: string, names: readonly string[]): RequestError {
  const suggestion = suggest(
    second,
    names.map((name) => name.slice(first.length + 1)),
  );
  return new RequestError({
    code: "DROVER-USE-001",
    field: first,
    message: `Unknown command ${first} ${second}.${suggestion ? ` Did you mean ${first} ${suggestion}?` : ""}`,
    next: `Use ${names.map((name) => `drover ${name}`).join(" or ")}.`,
  });
}

function unknownCommand(first: string): RequestError {
  const names = Object.keys(commands);
  const suggestion = suggest(first, new Set(names.flatMap((name) => [name, name.split(" ")[0]!])));
  return new RequestError({
    code: "DROVER-USE-007",
    field: first,
    message: `Unknown command ${first}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    next: "Run `drover --help` to list the commands.",
  });
}
