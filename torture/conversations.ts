import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runsDirectory, workDirectory } from "../src/model/state-layout.ts";
import type { StoredEvent } from "../src/model/event.ts";
import type { Run } from "../src/model/run.ts";
import { isTerminal } from "../src/model/states.ts";
import type { ModelRequest, Turn } from "../test/model-server/script.ts";
import { startModelServer } from "../test/model-server/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { allEvents, faultsOfLog } from "./record.ts";
import { each, pause, retryWhileUnreachable, upTo, waitFor } from "./wait.ts";

const providers = ["scripted", "anthropic"] as const;
type ProviderName = (typeof providers)[number];

/** The number of answers that call tools. One more answer ends the conversation. */
const turns = 15;
/** How often a run may lose its runner without failing. */
const maxLosses = 3;

/**
 * R4-model: kills the runner of a conversation at random moments, up to three times. The run continues on another runner
 * and completes. No command or edit is executed twice, and the model is not asked again for an answer that is on record.
 */
export async function conversationsLost(
  { runs, atOnce, losses }: { runs: number; atOnce: number; losses?: number },
  tools: Tools,
): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    const asked: string[] = [];
    const server = await startModelServer((request) => answerTo(request, asked, place));
    const found: Conversation[] = [];
    try {
      mkdirSync(join(place.directory, "ledger"));
      await place.client.agents.put("coder", {
        type: "autonomous",
        executor: "model",
        model: "m",
        max_attempts: 1,
        permissions: { mode: "bypassPermissions" },
      });
      await each(upTo(runs * providers.length), atOnce, async (at) => {
        const provider = providers[at % providers.length]!;
        const max = losses ?? 1 + Math.floor(Math.random() * maxLosses);
        found.push(await converse(place, { provider, name: `${provider}-${at}`, url: server.url, most: max }));
        if (found.length % 10 === 0) tools.progress(`${found.length} of ${runs * providers.length} conversations`);
      });
      return judge(place, found, asked, await allEvents(place.client));
    } finally {
      await place.processes.endAll();
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
  place: Place,
  { provider, name, url, most: max }: { provider: ProviderName; name: string; url: string; most: number },
): Promise<Conversation> {
  const { client } = place;
  const script = join(place.directory, "scripts", `${name}.json`);
  const ledger = ledgerOf(place, name);
  writeFileSync(script, JSON.stringify({ turns: Array.from(upTo(turns + 1), (turn) => turnOf(turn, ledger, "")) }));
  const startRunner = (number: number) =>
    place.startRunner({
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
  const directoryOf = (number: number, { session_id }: Run): string =>
    join(workDirectory(runsDirectory(join(place.directory, "runners", `${name}-${number}`))), session_id ?? "");
  while (losses.length < max) {
    const started = await waitFor(async () => waitForProgress(await client.runs.get(run_id), losses, place), 180_000);
    if (started === null || isTerminal(started.status)) break;
    await pause(Math.random() * 1500);
    child.signal("SIGKILL");
    await child.closed;
    losses.push({ attempt: started.attempt, files: filesIn(directoryOf(losses.length, started)) });
    writeFileSync(`${ledger}.lost`, "");
    ({ child } = await startRunner(losses.length));
  }
  const get = (): Promise<Run> => retryWhileUnreachable(() => client.runs.get(run_id));
  const run =
    (await waitFor(async () => [await get()].find(({ status }) => isTerminal(status)) ?? null, 300_000)) ??
    (await get());
  // If a runner was killed just after its run ended, its replacement never had the run.
  const last = losses.findLastIndex((_, at) => run.runner_id?.startsWith(`${name}-${at}-`));
  const files = last === -1 ? filesIn(directoryOf(losses.length, run)) : losses[last]!.files;
  child.signal("SIGTERM");
  return { provider, name, run, losses, files };
}

/** Waits until the run has ended, or runs on the runner after the last loss and has a saved state to continue from. */
async function waitForProgress(run: Run, losses: readonly Loss[], { client }: Place): Promise<Run | null> {
  if (isTerminal(run.status)) return run;
  if (run.status !== "running" || run.attempt <= (losses.at(-1)?.attempt ?? 0)) return null;
  const { items } = await client.runs.events(run.run_id, { limit: 100 });
  return items.some(({ event }) => event.type === "system" && event.subtype === "init") ? run : null;
}

/** Alternates commands, edits and reads. Each command appends a unique line to the ledger. */
function turnOf(
  turn: number,
  ledger: string,
  number: string,
): { text: string; tools?: { name: string; input: object }[] } {
  const text = `turn ${turn}${number}`;
  const write = (path: string) => ({ name: "file.write", input: { path, content: text } });
  const read = (path: string) => ({ name: "file.read", input: { path } });
  // The last turns wait for a loss, so that no conversation ends before its runner was killed.
  const deadline = turn + 3 < turns ? "" : `; until [ -e '${ledger}.lost' ]; do sleep 0.1; done`;
  const command = `echo ${turn} >> '${ledger}'; sleep 0.1${deadline}`;
  if (turn >= turns) return { text };
  if (turn % 3 === 0) return { text, tools: [{ name: "command.run", input: { command } }] };
  if (turn % 3 === 1) return { text, tools: [write(`a-${turn}`), write(`b-${turn}`)] };
  return { text, tools: [read(`a-${turn - 1}`), read(`b-${turn - 1}`)] };
}

/** Records `NAME TURN` for each request. The answer says which request of that turn it was. */
function answerTo({ messages }: ModelRequest, asked: string[], place: Place): Turn {
  const name = /This is (\S+)\./.exec(messages.find(({ role }) => role === "user")?.text ?? "")?.[1] ?? "";
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const key = `${name} ${turn}`;
  asked.push(key);
  const number = asked.filter((item) => item === key).length;
  const { text, tools = [] } = turnOf(turn, ledgerOf(place, name), ` request ${number}`);
  const calls = tools.map(({ name: tool, input }) => ({
    name: tool.replace(".", "_"),
    input: { ...input },
    exact: true as const,
  }));
  return { text, tools: calls, slow_ms_per_chunk: 5 };
}

const ledgerOf = (place: Place, name: string): string => join(place.directory, "ledger", name);
const filesIn = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : []);

interface Judged {
  /** When and in which attempt the run lost its runner, killed or not. */
  lost: string[];
  twice: string[];
  again: string[];
  faults: string[];
  unknown: number;
  effects: number;
}

function judge(
  place: Place,
  found: readonly Conversation[],
  asked: readonly string[],
  logs: ReadonlyMap<string, readonly StoredEvent[]>,
): Finding {
  const judged = found.map((item) => judgeOne(place, item, asked, logs.get(item.run.run_id) ?? []));
  const count = (valueOf: (one: Judged) => number): number => judged.reduce((sum, item) => sum + valueOf(item), 0);
  // On a busy machine leases may expire too. A run with more than three losses may fail.
  const overdone = found.filter((_, at) => judged[at]!.lost.length > maxLosses);
  const unfinished = found.filter((item) => item.run.status !== "completed" && !overdone.includes(item));
  return {
    seen: {
      runs: found.length,
      kills: found.reduce((sum, { losses }) => sum + losses.length, 0),
      "never killed": found.filter(({ losses }) => losses.length === 0).length,
      "not completed": unfinished.length,
      "commands and edits": count(({ effects }) => effects),
      "of them told as unknown": count(({ unknown }) => unknown),
      "carried out twice": count(({ twice }) => twice.length),
      "answers asked for again": count(({ again }) => again.length),
    },
    broken: [
      ...unfinished.map(({ name, run }) => `${name} is ${run.status} (${run.reason}): ${run.error}`),
      ...judged.flatMap(({ twice, again, faults }) => [...twice, ...again, ...faults]),
    ],
    late: overdone.map((item) => {
      const { lost } = judged[found.indexOf(item)]!;
      return `${item.name} was killed ${item.losses.length} times, and lost its runner ${lost.length} times: ${lost.join(" ")}`;
    }),
  };
}

function judgeOne(
  place: Place,
  { provider, name, run, losses, files }: Conversation,
  asked: readonly string[],
  log: readonly StoredEvent[],
): Judged {
  const lost = log.flatMap(({ at, attempt, event }) => {
    if (event.type === "status" && event.status === "pending" && attempt > 0)
      return [`${at} attempt ${attempt}: ${event.reason}`];
    return event.type === "result" && event.reason === "runner_lost"
      ? [`${at} attempt ${attempt}: ${event.error}`]
      : [];
  });
  const faults = faultsOfLog(run.run_id, log);
  const judged: Judged = { lost, twice: [], again: [], faults, unknown: 0, effects: 0 };
  const said = log.flatMap(({ event }) => (event.type === "assistant" ? [event.text] : []));
  for (const turn of upTo(turns + 1)) {
    const requests = asked.filter((item) => item === `${name} ${turn}`).length;
    const due = `turn ${turn}${provider === "scripted" ? "" : ` request ${requests}`}`;
    const answers = said.filter((text) => text === `turn ${turn}` || text.startsWith(`turn ${turn} `));
    // An earlier answer was on record, but the model was asked again.
    if (answers.length === 0 && run.status !== "completed") continue;
    if (answers.length !== 1 || answers[0] !== due)
      judged.again.push(`${name}: turn ${turn} is on the record as ${JSON.stringify(answers)}, and ${due} was due`);
  }
  const ledger = existsSync(ledgerOf(place, name)) ? readFileSync(ledgerOf(place, name), "utf8").split("\n") : [];
  for (const { event } of log) {
    if (event.type !== "tool_use" || event.name === "file.read") continue;
    judged.effects += 1;
    const results = log.flatMap(({ attempt, event: valueOf }) =>
      valueOf.type === "tool_result" && valueOf.tool_use_id === event.tool_use_id
        ? [{ attempt, output: valueOf.output }]
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
    const input = event.input as { command?: string; path?: string }; // turnOf creates only these inputs
    if (input.command !== undefined) {
      const times = ledger.filter((line) => line === /echo (\d+)/.exec(input.command!)?.[1]).length;
      if (times > 1) judged.twice.push(`${name}: ${input.command} was run ${times} times`);
      if (times === 0 && !isUnknown) judged.faults.push(`${name}: ${input.command} was not run`);
    } else if (!isUnknown) {
      const path = input.path ?? "";
      if (losses.some((loss) => loss.attempt < result.attempt && loss.files.includes(path)))
        judged.twice.push(`${name}: ${path} was written before attempt ${result.attempt} wrote it`);
      if (!files.includes(path)) judged.faults.push(`${name}: ${path} did not come along to the last runner`);
    }
  }
  return judged;
}
