import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { write } from "./io.ts";
import type { CommandSpec } from "./options.ts";
import { reportError } from "./report-error.ts";
import { runCommand } from "./run-command.ts";

declare const DROVER_VERSION: string;

/** Every command, by the words that name it. Each is its own file, loaded when asked for. */
const commands: Record<string, { about: string; load: () => Promise<CommandSpec> }> = {
  up: { about: "coordinator and runner by one command", load: async () => (await import("./up.ts")).upCommand },
  run: { about: "run an agent and wait for its result", load: async () => (await import("./run.ts")).runCommand },
  exec: { about: "run one command, on the record", load: async () => (await import("./exec.ts")).execCommand },
  "runs list": { about: "what ran, newest first", load: async () => (await import("./runs-list.ts")).runsList },
  "runs show": { about: "one run with its output", load: async () => (await import("./runs-show.ts")).runsShow },
  "runs events": { about: "the log of a run, live", load: async () => (await import("./runs-events.ts")).runsEvents },
  "runs files": { about: "what a run left", load: async () => (await import("./runs-files.ts")).runsFiles },
  "runs stop": { about: "end runs", load: async () => (await import("./runs-stop.ts")).runsStop },
  "runs retry": { about: "run it again", load: async () => (await import("./runs-retry.ts")).runsRetry },
  "sessions list": { about: "what can go on", load: async () => (await import("./sessions.ts")).sessionsList },
  "sessions show": {
    about: "one session with its runs",
    load: async () => (await import("./sessions.ts")).sessionsShow,
  },
  "sessions resume": {
    about: "go on with a session",
    load: async () => (await import("./sessions-resume.ts")).sessionsResume,
  },
  "sessions fork": {
    about: "go on with a copy of a session",
    load: async () => (await import("./sessions-resume.ts")).sessionsFork,
  },
  "sessions delete": {
    about: "end a session and its folders",
    load: async () => (await import("./sessions.ts")).sessionsDelete,
  },
  "agents list": { about: "what can be run", load: async () => (await import("./agents.ts")).agentsList },
  "agents show": { about: "one agent's definition", load: async () => (await import("./agents.ts")).agentsShow },
  "agents check": {
    about: "are these definitions sound?",
    load: async () => (await import("./agents.ts")).agentsCheck,
  },
  "runners list": { about: "who claims runs", load: async () => (await import("./runners.ts")).runnersList },
  "runners drain": {
    about: "no further runs for a runner",
    load: async () => (await import("./runners.ts")).runnersDrain,
  },
  coordinator: {
    about: "keeps the journal and hands out runs",
    load: async () => (await import("./coordinator.ts")).coordinatorCommand,
  },
  runner: { about: "claims runs and carries them out", load: async () => (await import("./runner.ts")).runnerCommand },
  "tokens list": { about: "who may do what", load: async () => (await import("./tokens.ts")).tokensList },
  "tokens create": {
    about: "a new token, shown once",
    load: async () => (await import("./tokens-create.ts")).tokensCreate,
  },
  "tokens enrol": {
    about: "a token that a runner exchanges, once",
    load: async () => (await import("./tokens-create.ts")).tokensEnrol,
  },
  "tokens rotate": {
    about: "a new token for an old one",
    load: async () => (await import("./tokens-rotate.ts")).tokensRotate,
  },
  "tokens revoke": { about: "ends tokens at once", load: async () => (await import("./tokens.ts")).tokensRevoke },
  "audit verify": { about: "is the record whole?", load: async () => (await import("./audit-verify.ts")).auditVerify },
  "audit export": {
    about: "the record as JSON lines",
    load: async () => (await import("./audit-export.ts")).auditExport,
  },
  backup: { about: "the whole record in one file", load: async () => (await import("./backup.ts")).backupCommand },
  restore: { about: "a backup into a new place", load: async () => (await import("./backup.ts")).restoreCommand },
  migrate: { about: "this record into PostgreSQL", load: async () => (await import("./migrate.ts")).migrateCommand },
  doctor: {
    about: "what this machine can do, what is missing",
    load: async () => (await import("./doctor.ts")).doctor,
  },
};

export async function main(argv: readonly string[]): Promise<void> {
  try {
    await obey(argv);
  } catch (error) {
    process.exit(reportError(error, argv.includes("--json")));
  }
}

async function obey(argv: readonly string[]): Promise<void> {
  const [first = "", second = ""] = argv;
  if (first === "--version" || first === "-v") return write(1, `${DROVER_VERSION}\n`);
  if (first === "" || first === "--help" || first === "-h") return overview();
  if (first === "help") return second === "" ? overview() : obey([...argv.slice(1), "--help"]);
  for (const words of [2, 1]) {
    const name = argv.slice(0, words).join(" ");
    if (Object.hasOwn(commands, name)) return runCommand(await commands[name]!.load(), argv.slice(words));
  }
  throw unknownCommand(first, second);
}

async function overview(): Promise<void> {
  const { columns } = await import("./help.ts");
  write(
    1,
    [
      "Drover runs any agent, anywhere, on the record.",
      "",
      "Try",
      ...columns([
        ['drover exec "echo hello"', "# run a command"],
        ["drover runs list", "# see its record"],
        ["drover audit verify", "# prove that nothing was changed since"],
      ]),
      "",
      "Commands",
      ...columns(Object.entries(commands).map(([name, { about }]): [string, string] => [name, about])),
      "",
      "`drover help COMMAND` tells more. --version shows the version.",
      "",
    ].join("\n"),
  );
}

function unknownCommand(first: string, second: string): RequestError {
  const names = Object.keys(commands);
  const family = names.filter((name) => name.startsWith(`${first} `));
  if (family.length > 0) {
    return new RequestError({
      code: "DROVER-USE-001",
      field: first,
      message: second ? `${first} has no ${second}.` : `${first} needs one more word.`,
      next: `Try ${family.map((name) => `drover ${name}`).join(" or ")}.`,
    });
  }
  const near = suggest(first, new Set(names.flatMap((name) => [name, name.split(" ")[0]!])));
  return new RequestError({
    code: "DROVER-USE-007",
    field: first,
    message: `Unknown command ${first}.${near ? ` Did you mean ${near}?` : ""}`,
    next: "`drover --help` lists the commands.",
  });
}
