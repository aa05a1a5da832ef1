import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runsDirectory, workDirectory } from "../src/model/state-layout.ts";
import type { StoredEvent } from "../src/model/event.ts";
import type { Run } from "../src/model/run.ts";
import { hasEnded } from "../src/model/states.ts";
import type { ModelRequest, Turn } from "../test/model-server/script.ts";
import { startModelServer } from "../test/model-server/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllEvents, findLogFaults } from "./record.ts";
import { forEachConcurrently, pause, retryWhileUnreachable, countUpTo, waitFor } from "./wait.ts";

const providers = ["scripted", "anthropic"] as const;
type ProviderName = (typeof providers)[number];

/** The number of answers that call tools. One more answer ends the conversation. */
const turns = 15;
/** A run fails if it loses its runner more often than this. */
const maxLosses = 3;

/**
 * R4-model: kills the runner of a conversation at random moments, up to three times. The run continues on another runner
 * and completes. No command or edit is executed twice, and the model is not asked again for an answer that is on record.
 */
export async function conversationRunnersKilled(
  { runs, atOnce, losses }: { runs: number; atOnce: number; losses?: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const requestKeys: string[] = [];
    const server = await startModelServer((request) => createAnswer(request, requestKeys, testbed));
    const conversations: Conversation[] = [];
    try {
      mkdirSync(join(testbed.directory, "ledger"));
      await testbed.client.agents.put("coder", {
        type: "autonomous",
        executor: "model",
        model: "m",
        max_attempts: 1,
        permissions: { mode: "bypassPermissions" },
      });
      await forEachConcurrently(countUpTo(runs * providers.length), atOnce, async (index) => {
        const provider = providers[index % providers.length]!;
        const lossLimit = losses ?? 1 + Math.floor(Math.random() * maxLosses);
        conversations.push(
          await converse(testbed, { provider, name: `${provider}-${index}`, url: server.url, lossLimit }),
        );
        if (conversations.length % 10 === 0)
          tools.progress(`${conversations.length} of ${runs * providers.length} conversations`);
      });
      return judge(testbed, conversations, requestKeys, await readAllEvents(testbed.client));
    } finally {
      await testbed.processes.endAll();
      await server.stop();
    }
  });
}

interface Conversation {
  provider: ProviderName;
  name: string;
  run: Run;
  losses: readonly Loss[];
  /** Files in the last runner's work directory. */
  files: readonly string[];
}

/** A killed runner and the files it had written, whether or not they are on record. */
interface Loss {
  attempt: number;
  files: readonly string[];
}

async function converse(
  testbed: Testbed,
  { provider, name, url, lossLimit }: { provider: ProviderName; name: string; url: string; lossLimit: number },
): Promise<Conversation> {
  const { client } = testbed;
  const script = join(testbed.directory, "scripts", `${name}.json`);
  const ledger = ledgerPath(testbed, name);
  writeFileSync(
    script,
    JSON.stringify({ turns: Array.from(countUpTo(turns + 1), (turn) => createTurn(turn, ledger, "")) }),
  );
  const startRunner = (number: number) =>
    testbed.startRunner({
      name: `${name}-${number}`,
      slots: 1,
      tags: [name],
      // A session can continue only on runners with the same profile.
      profileName: name,
      env: { ANTHROPIC_API_KEY: "key" },
      profile: { type: "model", config: provider === "scripted" ? { provider, script } : { provider, base_url: url } },
    });
  let { child } = await startRunner(0);
  const prompt = `This is ${name}.`;
  const { run_id } = await client.submit({ agent_name: "coder", prompt, demands: { tags: [name] } });
  const losses: Loss[] = [];
  const getDirectory = (number: number, { session_id }: Run): string =>
    join(workDirectory(runsDirectory(join(testbed.directory, "runners", `${name}-${number}`))), session_id ?? "");
  while (losses.length < lossLimit) {
    const started = await waitFor(async () => findProgress(await client.runs.get(run_id), losses, testbed), 180_000);
    if (started === null || hasEnded(started.status)) break;
    await pause(Math.random() * 1500);
    child.signal("SIGKILL");
    await child.closed;
    losses.push({ attempt: started.attempt, files: readFiles(getDirectory(losses.length, started)) });
    writeFileSync(`${ledger}.lost`, "");
    ({ child } = await startRunner(losses.length));
  }
  const get = (): Promise<Run> => retryWhileUnreachable(() => client.runs.get(run_id));
  const run =
    (await waitFor(async () => [await get()].find(({ status }) => hasEnded(status)) ?? null, 300_000)) ?? (await get());
  // If a runner was killed just after its run ended, its replacement never had the run.
  const last = losses.findLastIndex((_, index) => run.runner_id?.startsWith(`${name}-${index}-`));
  const files = last === -1 ? readFiles(getDirectory(losses.length, run)) : losses[last]!.files;
  child.signal("SIGTERM");
  return { provider, name, run, losses, files };
}

/** Returns the run if it has ended, or if it runs on the runner after the last loss and has a saved state; else null. */
async function findProgress(run: Run, losses: readonly Loss[], { client }: Testbed): Promise<Run | null> {
  if (hasEnded(run.status)) return run;
  if (run.status !== "running" || run.attempt <= (losses.at(-1)?.attempt ?? 0)) return null;
  const { items } = await client.runs.events(run.run_id, { limit: 100 });
  return items.some(({ event }) => event.type === "system" && event.subtype === "init") ? run : null;
}

/** Alternates commands, edits and reads. Each command appends a unique line to the ledger. */
function createTurn(
  turn: number,
  ledger: string,
  suffix: string,
): { text: string; tools?: { name: string; input: object }[] } {
  const text = `turn ${turn}${suffix}`;
  const write = (path: string) => ({ name: "file.write", input: { path, content: text } });
  const read = (path: string) => ({ name: "file.read", input: { path } });
  // The last turns wait for a loss, so that no conversation ends before its runner was killed.
  const waitForLoss = turn + 3 < turns ? "" : `; until [ -e '${ledger}.lost' ]; do sleep 0.1; done`;
  const command = `echo ${turn} >> '${ledger}'; sleep 0.1${waitForLoss}`;
  if (turn >= turns) return { text };
  if (turn % 3 === 0) return { text, tools: [{ name: "command.run", input: { command } }] };
  if (turn % 3 === 1) return { text, tools: [write(`a-${turn}`), write(`b-${turn}`)] };
  return { text, tools: [read(`a-${turn - 1}`), read(`b-${turn - 1}`)] };
}

/** Records `NAME TURN` for each request. The answer says which request of that turn it was. */
function createAnswer({ messages }: ModelRequest, requestKeys: string[], testbed: Testbed): Turn {
  const name = /This is (\S+)\./.exec(messages.find(({ role }) => role === "user")?.text ?? "")?.[1] ?? "";
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const key = `${name} ${turn}`;
  requestKeys.push(key);
  const number = requestKeys.filter((item) => item === key).length;
  const { text, tools = [] } = createTurn(turn, ledgerPath(testbed, name), ` request ${number}`);
  const calls = tools.map(({ name: tool, input }) => ({
    name: tool.replace(".", "_"),
    input: { ...input },
    exact: true as const,
  }));
  return { text, tools: calls, slow_ms_per_chunk: 5 };
}

const ledgerPath = (testbed: Testbed, name: string): string => join(testbed.directory, "ledger", name);
const readFiles = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : []);

interface Judged {
  /** When and in which attempt the run lost its runner, killed or not. */
  lost: string[];
  executedTwice: string[];
  askedAgain: string[];
  faults: string[];
  unknown: number;
  effects: number;
}

function judge(
  testbed: Testbed,
  conversations: readonly Conversation[],
  requestKeys: readonly string[],
  logs: ReadonlyMap<string, readonly StoredEvent[]>,
): Finding {
  const judged = conversations.map((item) => judgeOne(testbed, item, requestKeys, logs.get(item.run.run_id) ?? []));
  const count = (valueOf: (conversation: Judged) => number): number =>
    judged.reduce((sum, item) => sum + valueOf(item), 0);
  // On a busy machine leases may expire too. A run with more than three losses may fail.
  const lostTooOften = conversations.filter((_, index) => judged[index]!.lost.length > maxLosses);
  const unfinished = conversations.filter((item) => item.run.status !== "completed" && !lostTooOften.includes(item));
  return {
    seen: {
      runs: conversations.length,
      kills: conversations.reduce((sum, { losses }) => sum + losses.length, 0),
      "never killed": conversations.filter(({ losses }) => losses.length === 0).length,
      "not completed": unfinished.length,
      "commands and edits": count(({ effects }) => effects),
      "of them reported as unknown": count(({ unknown }) => unknown),
      "carried out twice": count(({ executedTwice }) => executedTwice.length),
      "answers asked for again": count(({ askedAgain }) => askedAgain.length),
    },
    broken: [
      ...unfinished.map(({ name, run }) => `${name} is ${run.status} (${run.reason}): ${run.error}`),
      ...judged.flatMap(({ executedTwice, askedAgain, faults }) => [...executedTwice, ...askedAgain, ...faults]),
    ],
    late: lostTooOften.map((item) => {
      const { lost } = judged[conversations.indexOf(item)]!;
      return `${item.name} was killed ${item.losses.length} times, and lost its runner ${lost.length} times: ${lost.join(" ")}`;
    }),
  };
}

function judgeOne(
  testbed: Testbed,
  { provider, name, run, losses, files }: Conversation,
  requestKeys: readonly string[],
  log: readonly StoredEvent[],
): Judged {
  const lost = log.flatMap(({ at, attempt, event }) => {
    if (event.type === "status" && event.status === "pending" && attempt > 0)
      return [`${at} attempt ${attempt}: ${event.reason}`];
    return event.type === "result" && event.reason === "runner_lost"
      ? [`${at} attempt ${attempt}: ${event.error}`]
      : [];
  });
  const faults = findLogFaults(run.run_id, log);
  const judged: Judged = { lost, executedTwice: [], askedAgain: [], faults, unknown: 0, effects: 0 };
  const texts = log.flatMap(({ event }) => (event.type === "assistant" ? [event.text] : []));
  for (const turn of countUpTo(turns + 1)) {
    const requests = requestKeys.filter((item) => item === `${name} ${turn}`).length;
    const expected = `turn ${turn}${provider === "scripted" ? "" : ` request ${requests}`}`;
    const answers = texts.filter((text) => text === `turn ${turn}` || text.startsWith(`turn ${turn} `));
    if (answers.length === 0 && run.status !== "completed") continue;
    // Any answer but that to the last request means that the model was asked again for a recorded answer.
    if (answers.length !== 1 || answers[0] !== expected)
      judged.askedAgain.push(
        `${name}: for turn ${turn} the log has ${JSON.stringify(answers)}, expected ${JSON.stringify(expected)}`,
      );
  }
  const ledger = existsSync(ledgerPath(testbed, name))
    ? readFileSync(ledgerPath(testbed, name), "utf8").split("\n")
    : [];
  for (const { event } of log) {
    if (event.type !== "tool_use" || event.name === "file.read") continue;
    judged.effects += 1;
    const results = log.flatMap(({ attempt, event: other }) =>
      other.type === "tool_result" && other.tool_use_id === event.tool_use_id
        ? [{ attempt, output: other.output }]
        : [],
    );
    const [result] = results;
    if (results.length === 0 && run.status !== "completed") continue;
    if (results.length !== 1 || result === undefined) {
      judged.faults.push(`${name}: ${event.tool_use_id} has ${results.length} results`);
      continue;
    }
    const isUnknown = JSON.stringify(result.output).includes("effect_unknown");
    if (isUnknown) judged.unknown += 1;
    const input = event.input as { command?: string; path?: string }; // createTurn creates only these inputs
    if (input.command !== undefined) {
      const times = ledger.filter((line) => line === /echo (\d+)/.exec(input.command!)?.[1]).length;
      if (times > 1) judged.executedTwice.push(`${name}: ${input.command} was run ${times} times`);
      if (times === 0 && !isUnknown) judged.faults.push(`${name}: ${input.command} was not run`);
    } else if (!isUnknown) {
      const path = input.path ?? "";
      if (losses.some((loss) => loss.attempt < result.attempt && loss.files.includes(path)))
        judged.executedTwice.push(`${name}: ${path} was written before attempt ${result.attempt} wrote it`);
      if (!files.includes(path)) judged.faults.push(`${name}: ${path} is missing on the last runner`);
    }
  }
  return judged;
}
