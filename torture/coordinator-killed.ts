import { isTerminal } from "../src/model/states.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import type { Child } from "./processes.ts";
import { allEvents, allRuns, faultsOfLog, readAudit } from "./record.ts";
import { each, patiently, pause, upTo } from "./wait.ts";

/**
 * R1, R2, R8: the coordinator is killed at random, also while it starts, while runs are asked for, claimed
 * and carried out. Every run that was acknowledged ends, is carried out once, and is on the record.
 */
export async function coordinatorKilled(
  { kills, runs }: { kills: number; runs: number },
  tools: Tools,
): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    await place.putAgent("work");
    await place.startRunner({ name: "steady", slots: 6 });
    // comes back sooner after an outage, so that there is always something under way to be hit
    await place.startRunner({ name: "quick", slots: 6, times: { pollPauseMs: 30 } });
    const storm = startStorm(place, kills, tools);
    const asked = await submitDuring(place, runs, storm);
    const survivor = await storm.over;
    const since = performance.now();
    const stuck = await untilNothingMoves(place);
    const settledMs = performance.now() - since;
    const finding = await judge(place, asked, stuck);
    if (!survivor.alive) finding.broken.push(`the coordinator ended by itself: ${survivor.said}`);
    return { ...finding, seen: { kills, ...finding.seen, "ms until all had ended": Math.round(settledMs) } };
  });
}

interface Storm {
  readonly done: number;
  readonly total: number;
  /** The coordinator that is left. */
  over: Promise<Child>;
}

function startStorm(place: Place, kills: number, tools: Tools): Storm {
  let done = 0;
  const run = async (): Promise<Child> => {
    let victim = place.coordinator;
    while (done < kills) {
      await pause(Math.random() * 1500);
      victim.signal("SIGKILL");
      await victim.closed;
      done += 1;
      if (done < kills) victim = place.spawnCoordinator();
      if (done % 10 === 0) tools.progress(`${done} of ${kills} kills`);
    }
    return place.startCoordinator();
  };
  const over = run();
  return {
    get done() {
      return done;
    },
    total: kills,
    over,
  };
}

/** Asks for as many runs with each kill: the ids that were acknowledged. Each request is repeated until it is answered. */
async function submitDuring({ client }: Place, runs: number, storm: Storm): Promise<string[]> {
  const asked: string[] = [];
  await each(upTo(runs), 8, async (at) => {
    while (at / runs > (storm.done + 1) / storm.total) await pause(20);
    const run = await patiently(() => client.submit({ agent_name: "work", idempotency_key: `run ${at}` }));
    asked.push(run.run_id);
  });
  return asked;
}

const stuckMs = 60_000;

/** How many runs are open when none has ended for a minute: how long a backlog takes is the machine's business. */
async function untilNothingMoves({ client }: Place): Promise<number> {
  let ended = -1;
  for (let since = performance.now(); performance.now() - since < stuckMs; await pause(500)) {
    const runs = await patiently(() => allRuns(client));
    const count = runs.filter(({ status }) => isTerminal(status)).length;
    if (count === runs.length) return 0;
    if (count > ended) since = performance.now();
    ended = count;
  }
  return (await allRuns(client)).filter(({ status }) => !isTerminal(status)).length;
}

async function judge(place: Place, asked: readonly string[], stuck: number): Promise<Finding> {
  const broken: string[] = [];
  const runs = new Map((await allRuns(place.client)).map((run) => [run.run_id, run]));
  const lost = asked.filter((run_id) => !runs.has(run_id));
  if (lost.length > 0) broken.push(`lost: ${lost.join(", ")}`);
  if (new Set(asked).size !== asked.length) broken.push("two requests were answered with one run");
  if (runs.size !== asked.length) broken.push(`${runs.size} runs for ${asked.length} requests`);
  if (stuck > 0) broken.push(`${stuck} were open when none had ended for 60 s`);
  const failed = [...runs.values()].filter(({ status }) => status !== "completed");
  for (const run of failed.slice(0, 20)) broken.push(`${run.run_id} is ${run.status}: ${run.reason} ${run.error}`);

  const marks = place.marks().map((name) => name.split("."));
  const executions = new Map<string, number>();
  for (const [run_id = ""] of marks) executions.set(run_id, (executions.get(run_id) ?? 0) + 1);
  const twice = [...executions].filter(([, count]) => count > 1);
  for (const [run_id, count] of twice)
    broken.push(
      `${run_id} was carried out ${count} times; its attempt is ${runs.get(run_id)?.attempt}, its failures ${runs.get(run_id)?.failures}`,
    );

  const logs = await allEvents(place.client);
  for (const [run_id, log] of logs) broken.push(...faultsOfLog(run_id, log));
  const audit = await readAudit(place);
  if (!audit.verified) broken.push("the audit chain does not verify");
  const unrecorded = marks.filter(([, , execution_id = ""]) => !audit.executions.has(execution_id));
  const unended = [...audit.executions.values()].filter(({ state }) => state !== "ended");
  if (unrecorded.length > 0) broken.push(`${unrecorded.length} executions without a start on the record`);
  if (unended.length > 0) broken.push(`${unended.length} executions without an end on the record`);
  if (audit.executions.size !== marks.length)
    broken.push(`${audit.executions.size} executions on the record, ${marks.length} marks`);
  return {
    seen: {
      runs: asked.length,
      lost: lost.length,
      stuck,
      "not completed": failed.length,
      "carried out twice": twice.length,
      executions: marks.length,
      "missing on the record": unrecorded.length + unended.length,
    },
    broken,
    late: [],
  };
}
