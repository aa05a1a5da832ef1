import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { write } from "./io.ts";
import type { CommandSpec } from "./options.ts";
import { reportError } from "./report-error.ts";
import { runCommand } from "./run-command.ts";

declare const DROVER_VERSION: string;

/** Every command, by the words that name it. Each is its own file, loaded when asked for. */
const commands: Record<string, readonly [about: string, load: () => Promise<CommandSpec>]> = {
  init: ["write a small project", async () => (await import("./init.ts")).initCommand],
  up: ["coordinator and runner by one command", async () => (await import("./up.ts")).upCommand],
  ui: ["a link that signs a browser in to the dashboard", async () => (await import("./ui.ts")).uiCommand],
  run: ["run an agent and wait for its result", async () => (await import("./run.ts")).runCommand],
  chat: ["talk with an agent", async () => (await import("./chat.ts")).chatCommand],
  exec: ["run one command, on the record", async () => (await import("./exec.ts")).execCommand],
  "runs list": ["what ran, newest first", async () => (await import("./runs-list.ts")).runsList],
  "runs show": ["one run with its output", async () => (await import("./runs-show.ts")).runsShow],
  "runs events": ["the log of a run, live", async () => (await import("./runs-events.ts")).runsEvents],
  "runs files": ["what a run left", async () => (await import("./runs-files.ts")).runsFiles],
  "runs stop": ["end runs", async () => (await import("./runs-stop.ts")).runsStop],
  "runs retry": ["run it again", async () => (await import("./runs-retry.ts")).runsRetry],
  "runs approve": ["allow what a run asks for", async () => (await import("./runs-answer.ts")).runsApprove],
  "runs deny": ["refuse what a run asks for", async () => (await import("./runs-answer.ts")).runsDeny],
  "runs resume": ["continue a parked run now", async () => (await import("./runs-resume.ts")).runsResume],
  "questions list": ["what runs ask people", async () => (await import("./questions.ts")).questionsList],
  "questions show": ["one question with its input", async () => (await import("./questions.ts")).questionsShow],
  usage: ["tokens and cost of what ran", async () => (await import("./usage.ts")).usageCommand],
  "schedules list": ["what runs by itself, and when next", async () => (await import("./schedules.ts")).schedulesList],
  "schedules show": ["one schedule with its history", async () => (await import("./schedules.ts")).schedulesShow],
  "schedules next": ["when a schedule is due", async () => (await import("./schedules-next.ts")).schedulesNext],
  "schedules add": ["run an agent by itself", async () => (await import("./schedules-add.ts")).schedulesAdd],
  "schedules run": ["run a schedule now", async () => (await import("./schedules-change.ts")).schedulesRun],
  "schedules enable": ["let a schedule fire", async () => (await import("./schedules-change.ts")).schedulesEnable],
  "schedules disable": ["skip its slots", async () => (await import("./schedules-change.ts")).schedulesDisable],
  "schedules remove": ["end a schedule", async () => (await import("./schedules-change.ts")).schedulesRemove],
  "sessions list": ["what can go on", async () => (await import("./sessions.ts")).sessionsList],
  "sessions show": ["one session with its runs", async () => (await import("./sessions.ts")).sessionsShow],
  "sessions resume": ["go on with a session", async () => (await import("./sessions-resume.ts")).sessionsResume],
  "sessions fork": ["go on with a copy of a session", async () => (await import("./sessions-resume.ts")).sessionsFork],
  "sessions delete": ["end a session and its folders", async () => (await import("./sessions.ts")).sessionsDelete],
  "agents list": ["what can be run", async () => (await import("./agents.ts")).agentsList],
  "agents show": ["one agent's definition", async () => (await import("./agents.ts")).agentsShow],
  "agents check": ["are these definitions sound?", async () => (await import("./agents.ts")).agentsCheck],
  "agents accept": ["use definitions that are held", async () => (await import("./agents-accept.ts")).agentsAccept],
  trust: ["use what a folder brings", async () => (await import("./trust.ts")).trustCommand],
  "trust list": ["which folders are trusted", async () => (await import("./trust.ts")).trustList],
  "trust revoke": ["trust a folder no longer", async () => (await import("./trust.ts")).trustRevoke],
  "runners list": ["who claims runs", async () => (await import("./runners.ts")).runnersList],
  "runners drain": ["no further runs for a runner", async () => (await import("./runners.ts")).runnersDrain],
  coordinator: [
    "keeps the journal and hands out runs",
    async () => (await import("./coordinator.ts")).coordinatorCommand,
  ],
  runner: ["claims runs and carries them out", async () => (await import("./runner.ts")).runnerCommand],
  "tokens list": ["who may do what", async () => (await import("./tokens.ts")).tokensList],
  "tokens create": ["a new token, shown once", async () => (await import("./tokens-create.ts")).tokensCreate],
  "tokens enrol": [
    "a token that a runner exchanges, once",
    async () => (await import("./tokens-create.ts")).tokensEnrol,
  ],
  "tokens rotate": ["a new token for an old one", async () => (await import("./tokens-rotate.ts")).tokensRotate],
  "tokens revoke": ["ends tokens at once", async () => (await import("./tokens.ts")).tokensRevoke],
  "hooks list": ["addresses that submit runs", async () => (await import("./hooks.ts")).hooksList],
  "hooks show": ["one hook", async () => (await import("./hooks.ts")).hooksShow],
  "hooks add": ["a new address that submits runs", async () => (await import("./hooks.ts")).hooksAdd],
  "hooks rotate": ["a new secret for a hook", async () => (await import("./hooks.ts")).hooksRotate],
  "hooks enable": ["take deliveries again", async () => (await import("./hooks.ts")).hooksEnable],
  "hooks disable": ["refuse deliveries for now", async () => (await import("./hooks.ts")).hooksDisable],
  "hooks remove": ["end a hook", async () => (await import("./hooks.ts")).hooksRemove],
  "webhooks list": ["addresses that are notified of runs", async () => (await import("./webhooks.ts")).webhooksList],
  "webhooks add": ["a new address to notify", async () => (await import("./webhooks.ts")).webhooksAdd],
  "webhooks rotate": ["a new secret for a webhook", async () => (await import("./webhooks.ts")).webhooksRotate],
  "webhooks remove": ["end a webhook", async () => (await import("./webhooks.ts")).webhooksRemove],
  "webhooks deliveries": ["what was sent to webhooks", async () => (await import("./webhooks.ts")).webhooksDeliveries],
  "webhooks redeliver": ["send a delivery again", async () => (await import("./webhooks.ts")).webhooksRedeliver],
  "audit verify": ["is the record whole?", async () => (await import("./audit-verify.ts")).auditVerify],
  "audit export": ["the record as JSON lines", async () => (await import("./audit-export.ts")).auditExport],
  state: ["where the state of this folder is", async () => (await import("./state.ts")).stateCommand],
  "state move": ["a state directory to where it belongs", async () => (await import("./state.ts")).stateMove],
  backup: ["the whole record in one file", async () => (await import("./backup.ts")).backupCommand],
  restore: ["a backup into a new place", async () => (await import("./backup.ts")).restoreCommand],
  migrate: ["this record into PostgreSQL", async () => (await import("./migrate.ts")).migrateCommand],
  "agent-executor": [
    "run the agent of one file in one folder",
    async () => (await import("./agent-executor.ts")).agentExecutor,
  ],
  "file-tools": ["files inside one folder, for agents", async () => (await import("./file-tools.ts")).fileToolsCommand],
  mcp: ["agents as tools for other agents", async () => (await import("./mcp.ts")).mcpCommand],
  "import herdctl": [
    "agents of a herdctl fleet as agents of Drover",
    async () => (await import("./import-herdctl.ts")).importHerdctl,
  ],
  doctor: ["what this machine can do, what is missing", async () => (await import("./doctor.ts")).doctor],
};

/** A group that is a command on its own: `drover questions` is `drover questions list`. */
const alone: Record<string, string> = { questions: "questions list", schedules: "schedules list" };

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
    if (Object.hasOwn(commands, name)) return runCommand(await commands[name]![1](), argv.slice(words));
  }
  const group = Object.entries(commands).filter(([name]) => name.startsWith(`${first} `));
  if (group.length === 0) throw unknownCommand(first);
  if (second !== "" && !second.startsWith("-")) throw unknownInGroup(first, second, group);
  const itself = alone[first];
  if (itself) return runCommand(await commands[itself]![1](), argv.slice(1));
  const asked = second === "--help" || second === "-h";
  await showGroup(first, group, asked ? 1 : 2);
  if (!asked) process.exit(2);
}

type Named = [name: string, command: readonly [about: string, ...unknown[]]][];

async function showGroup(first: string, group: Named, fd: 1 | 2): Promise<void> {
  const { columns } = await import("./help.ts");
  const rows = columns(group.map(([name, [about]]): [string, string] => [`drover ${name}`, about]));
  write(
    fd,
    [`drover ${first} COMMAND`, "", "Commands", ...rows, "", `\`drover help ${first} COMMAND\` tells more.\n`].join(
      "\n",
    ),
  );
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
      ...columns(Object.entries(commands).map(([name, [about]]): [string, string] => [name, about])),
      "",
      "`drover help COMMAND` tells more. --version shows the version.",
      "",
    ].join("\n"),
  );
}

function unknownInGroup(first: string, second: string, group: Named): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: first,
    message: `${first} has no ${second}.`,
    next: `Try ${group.map(([name]) => `drover ${name}`).join(" or ")}.`,
  });
}

function unknownCommand(first: string): RequestError {
  const names = Object.keys(commands);
  const near = suggest(first, new Set(names.flatMap((name) => [name, name.split(" ")[0]!])));
  return new RequestError({
    code: "DROVER-USE-007",
    field: first,
    message: `Unknown command ${first}.${near ? ` Did you mean ${near}?` : ""}`,
    next: "`drover --help` lists the commands.",
  });
}
