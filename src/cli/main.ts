import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { write } from "./io.ts";
import type { CommandSpec } from "./options.ts";
import { reportError } from "./report-error.ts";
import { runCommand } from "./run-command.ts";

declare const DROVER_VERSION: string;

/** Every command by name. Each lives in its own file and is loaded on first use. */
const commands: Record<string, readonly [about: string, load: () => Promise<CommandSpec>]> = {
  init: ["create a small working project", async () => (await import("./init.ts")).initCommand],
  up: ["start a coordinator and a runner together", async () => (await import("./up.ts")).upCommand],
  ui: ["print a sign-in link for the dashboard", async () => (await import("./ui.ts")).uiCommand],
  run: ["run an agent and wait for its result", async () => (await import("./run.ts")).runCommand],
  chat: ["chat with an agent", async () => (await import("./chat.ts")).chatCommand],
  exec: ["run one command and record it", async () => (await import("./exec.ts")).execCommand],
  "runs list": ["list runs, newest first", async () => (await import("./runs-list.ts")).runsList],
  "runs show": ["show one run and its output", async () => (await import("./runs-show.ts")).runsShow],
  "runs events": ["follow the events of a run", async () => (await import("./runs-events.ts")).runsEvents],
  "runs files": ["list or download the files of a run", async () => (await import("./runs-files.ts")).runsFiles],
  "runs stop": ["stop runs", async () => (await import("./runs-stop.ts")).runsStop],
  "runs retry": ["run again with the same parameters", async () => (await import("./runs-retry.ts")).runsRetry],
  "runs approve": [
    "allow a tool call that a run asks about",
    async () => (await import("./runs-answer.ts")).runsApprove,
  ],
  "runs deny": ["deny a tool call that a run asks about", async () => (await import("./runs-answer.ts")).runsDeny],
  "runs resume": ["continue a parked run now", async () => (await import("./runs-resume.ts")).runsResume],
  "questions list": [
    "list questions that wait for an answer",
    async () => (await import("./questions.ts")).questionsList,
  ],
  "questions show": ["show one question in full", async () => (await import("./questions.ts")).questionsShow],
  usage: ["show token usage and cost", async () => (await import("./usage.ts")).usageCommand],
  "schedules list": ["list schedules and their next run", async () => (await import("./schedules.ts")).schedulesList],
  "schedules show": ["show one schedule and its history", async () => (await import("./schedules.ts")).schedulesShow],
  "schedules next": [
    "preview the next times of a schedule",
    async () => (await import("./schedules-next.ts")).schedulesNext,
  ],
  "schedules add": ["run an agent on a schedule", async () => (await import("./schedules-add.ts")).schedulesAdd],
  "schedules run": ["run a schedule now", async () => (await import("./schedules-change.ts")).schedulesRun],
  "schedules enable": [
    "resume a disabled schedule",
    async () => (await import("./schedules-change.ts")).schedulesEnable,
  ],
  "schedules disable": ["pause a schedule", async () => (await import("./schedules-change.ts")).schedulesDisable],
  "schedules remove": ["delete a schedule", async () => (await import("./schedules-change.ts")).schedulesRemove],
  "sessions list": ["list sessions, newest first", async () => (await import("./sessions.ts")).sessionsList],
  "sessions show": ["show one session and its runs", async () => (await import("./sessions.ts")).sessionsShow],
  "sessions resume": ["continue a session", async () => (await import("./sessions-resume.ts")).sessionsResume],
  "sessions fork": ["continue a copy of a session", async () => (await import("./sessions-resume.ts")).sessionsFork],
  "sessions delete": [
    "delete a session and its directories",
    async () => (await import("./sessions.ts")).sessionsDelete,
  ],
  "agents list": ["list agents", async () => (await import("./agents.ts")).agentsList],
  "agents show": ["show one agent's definition", async () => (await import("./agents.ts")).agentsShow],
  "agents check": ["check agent and profile files for errors", async () => (await import("./agents.ts")).agentsCheck],
  "agents accept": ["accept held agent definitions", async () => (await import("./agents-accept.ts")).agentsAccept],
  trust: ["trust a directory's configuration", async () => (await import("./trust.ts")).trustCommand],
  "trust list": ["list trusted directories", async () => (await import("./trust.ts")).trustList],
  "trust revoke": ["stop trusting a directory", async () => (await import("./trust.ts")).trustRevoke],
  "runners list": ["list runners", async () => (await import("./runners.ts")).runnersList],
  "runners drain": ["stop a runner from claiming runs", async () => (await import("./runners.ts")).runnersDrain],
  coordinator: ["serve the API and dispatch runs", async () => (await import("./coordinator.ts")).coordinatorCommand],
  runner: ["claim and execute runs", async () => (await import("./runner.ts")).runnerCommand],
  "tokens list": ["list API tokens", async () => (await import("./tokens.ts")).tokensList],
  "tokens create": ["create a token", async () => (await import("./tokens-create.ts")).tokensCreate],
  "tokens enrol": [
    "create a one-time token that enrols a runner",
    async () => (await import("./tokens-create.ts")).tokensEnrol,
  ],
  "tokens rotate": ["replace a token", async () => (await import("./tokens-rotate.ts")).tokensRotate],
  "tokens revoke": ["revoke tokens immediately", async () => (await import("./tokens.ts")).tokensRevoke],
  "hooks list": ["list incoming webhooks", async () => (await import("./hooks.ts")).hooksList],
  "hooks show": ["show one hook", async () => (await import("./hooks.ts")).hooksShow],
  "hooks add": ["add an incoming webhook that submits runs", async () => (await import("./hooks.ts")).hooksAdd],
  "hooks rotate": ["replace a hook's secret", async () => (await import("./hooks.ts")).hooksRotate],
  "hooks enable": ["accept deliveries again", async () => (await import("./hooks.ts")).hooksEnable],
  "hooks disable": ["refuse deliveries until enabled", async () => (await import("./hooks.ts")).hooksDisable],
  "hooks remove": ["delete a hook", async () => (await import("./hooks.ts")).hooksRemove],
  "webhooks list": ["list outgoing webhooks", async () => (await import("./webhooks.ts")).webhooksList],
  "webhooks add": ["add a URL to notify about runs", async () => (await import("./webhooks.ts")).webhooksAdd],
  "webhooks rotate": ["replace a webhook's secret", async () => (await import("./webhooks.ts")).webhooksRotate],
  "webhooks remove": ["delete a webhook", async () => (await import("./webhooks.ts")).webhooksRemove],
  "webhooks deliveries": ["list webhook deliveries", async () => (await import("./webhooks.ts")).webhooksDeliveries],
  "webhooks redeliver": ["send a delivery again", async () => (await import("./webhooks.ts")).webhooksRedeliver],
  "audit verify": ["verify the audit chain", async () => (await import("./audit-verify.ts")).auditVerify],
  "audit export": ["export the audit log as JSON lines", async () => (await import("./audit-export.ts")).auditExport],
  state: ["show where Drover keeps its state", async () => (await import("./state.ts")).stateCommand],
  "state move": ["move a state directory to its current location", async () => (await import("./state.ts")).stateMove],
  backup: ["back up the record to one file", async () => (await import("./backup.ts")).backupCommand],
  restore: ["restore a backup into an empty state", async () => (await import("./backup.ts")).restoreCommand],
  migrate: ["move the record to PostgreSQL", async () => (await import("./migrate.ts")).migrateCommand],
  "agent-executor": [
    "run one agent file in one directory",
    async () => (await import("./agent-executor.ts")).agentExecutor,
  ],
  "file-tools": [
    "file tools confined to one directory",
    async () => (await import("./file-tools.ts")).fileToolsCommand,
  ],
  mcp: ["offer agents as MCP tools", async () => (await import("./mcp.ts")).mcpCommand],
  "import herdctl": [
    "convert a herdctl fleet to Drover agents",
    async () => (await import("./import-herdctl.ts")).importHerdctl,
  ],
  doctor: ["check what this machine supports", async () => (await import("./doctor.ts")).doctor],
};

/** Groups with a default command: `drover questions` means `drover questions list`. */
const defaultCommands: Record<string, string> = { questions: "questions list", schedules: "schedules list" };

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
  if (first === "help") return second === "" ? showOverview() : dispatch([...argv.slice(1), "--help"]);
  for (const wordCount of [2, 1]) {
    const name = argv.slice(0, wordCount).join(" ");
    if (Object.hasOwn(commands, name)) return runCommand(await commands[name]![1](), argv.slice(wordCount));
  }
  const group = Object.entries(commands).filter(([name]) => name.startsWith(`${first} `));
  if (group.length === 0) throw unknownCommand(first);
  if (second !== "" && !second.startsWith("-")) throw unknownInGroup(first, second, group);
  const defaultCommand = defaultCommands[first];
  if (defaultCommand) return runCommand(await commands[defaultCommand]![1](), argv.slice(1));
  const wantsHelp = second === "--help" || second === "-h";
  await showGroup(first, group, wantsHelp ? 1 : 2);
  if (!wantsHelp) process.exit(2);
}

type CommandGroup = [name: string, command: readonly [about: string, ...unknown[]]][];

async function showGroup(first: string, group: CommandGroup, fd: 1 | 2): Promise<void> {
  const { columns } = await import("./help.ts");
  const rows = columns(group.map(([name, [about]]): [string, string] => [`drover ${name}`, about]));
  write(
    fd,
    [
      `drover ${first} COMMAND`,
      "",
      "Commands",
      ...rows,
      "",
      `Run \`drover help ${first} COMMAND\` for details.\n`,
    ].join("\n"),
  );
}

async function showOverview(): Promise<void> {
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
        ["drover audit verify", "# prove that it has not been changed since"],
      ]),
      "",
      "Commands",
      ...columns(Object.entries(commands).map(([name, [about]]): [string, string] => [name, about])),
      "",
      "Run `drover help COMMAND` for details, `drover --version` for the version.",
      "",
    ].join("\n"),
  );
}

function unknownInGroup(first: string, second: string, group: CommandGroup): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: first,
    message: `Unknown command ${first} ${second}.`,
    next: `Use ${group.map(([name]) => `drover ${name}`).join(" or ")}.`,
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
