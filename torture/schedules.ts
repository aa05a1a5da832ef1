import type { Schedule, Slot } from "../src/model/schedule.ts";
import { createSlotTimesFactory } from "../src/define/slot-times.ts";
import { killOne } from "./coordinator-killed.ts";
import { waitUntilAnswering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllRuns } from "./record.ts";
import { forEachConcurrently, retryWhileUnreachable, pause, countUpTo, waitFor } from "./wait.ts";

interface Sizes {
  schedules: number;
  /** Real time during which coordinators are killed. */
  seconds: number;
}

const speed = 60;
const overlaps = ["allow", "skip", "queue", "cancel_previous"] as const;

/**
 * Schedules are due every minute of a clock that runs 60 times as fast, on three coordinators (SQLite: one) that are killed
 * at random. Every slot has exactly one history line, no slot has two runs, and every run has a line.
 */
export async function schedules({ schedules: count, seconds }: Sizes, tools: Tools): Promise<Finding> {
  const from = Date.now();
  const triggerNow = (): number => from + (Date.now() - from) * speed;
  // No runner claims the runs, and they must not fail because of that.
  const times = { unmatchedMs: 86_400_000, trigger: { speed, from } };
  const work = async (testbed: Testbed): Promise<Finding> => {
    await testbed.putAgent("work");
    const created: Schedule[] = [];
    await forEachConcurrently(countUpTo(count), 8, async (index) => {
      const overlap = overlaps[index % overlaps.length]!;
      const catch_up = index % 3 === 0 ? ("one" as const) : ("none" as const);
      const body = { agent_name: "work", name: `s${index}`, cron: "* * * * *", overlap, catch_up };
      created.push(await retryWhileUnreachable(() => testbed.client.schedules.create(body)));
    });
    let kills = 0;
    for (const deadline = performance.now() + seconds * 1000; performance.now() < deadline; kills += 1) {
      await killOne(testbed);
      if (kills % 10 === 9) tools.progress(`${kills + 1} kills`);
    }
    await Promise.all(testbed.coordinators.map(({ url, child }) => waitUntilAnswering(url, child)));
    // From here on no slot starts a run.
    await forEachConcurrently(created, 8, async ({ schedule_id }) => {
      await retryWhileUnreachable(() => testbed.client.schedules.change(schedule_id, { enabled: false }));
    });
    const end = triggerNow();
    await forEachConcurrently(created, 8, (schedule) => waitUntilDecided(testbed, schedule, end));
    return judge(testbed, created, end, kills);
  };
  return withTestbed(tools, times, work, { coordinators: 3 });
}

/** Waits for a history line after `end`, which means that all earlier slots are settled. */
async function waitUntilDecided({ client }: Testbed, { schedule_id }: Schedule, end: number): Promise<void> {
  const isDecided = async (): Promise<true | null> => {
    const { last } = await retryWhileUnreachable(() => client.schedules.get(schedule_id));
    return last !== null && Date.parse(last.slot) > end ? true : null;
  };
  await waitFor(isDecided, 120_000, 200);
}

async function judge(testbed: Testbed, created: readonly Schedule[], end: number, kills: number): Promise<Finding> {
  const broken: string[] = [];
  const seen = { kills, schedules: created.length, slots: 0, fired: 0, missed: 0, "other skips": 0, runs: 0 };
  const ofRun = new Map<string, string>();
  const getSlotTimes = createSlotTimesFactory();
  for (const schedule of created) {
    const lines = (await readHistory(testbed, schedule)).filter(({ slot }) => Date.parse(slot) <= end);
    const times = getSlotTimes({ cron: "* * * * *", timezone: "UTC" }, 0);
    const expected = new Set<string>();
    const [first = ""] = schedule.next;
    for (let at: number | null = Date.parse(first); at !== null && at <= end; at = times.next(at))
      expected.add(new Date(at).toISOString());
    const settled = new Set(lines.map(({ slot }) => slot));
    const lost = [...expected].filter((slot) => !settled.has(slot));
    const extra = [...settled].filter((slot) => !expected.has(slot));
    if (lost.length > 0) broken.push(`${schedule.name}: ${lost.length} slots without a line, e.g. ${lost[0]}`);
    if (extra.length > 0) broken.push(`${schedule.name}: ${extra.length} lines for no slot, e.g. ${extra[0]}`);
    if (settled.size !== lines.length)
      broken.push(`${schedule.name}: ${lines.length - settled.size} slots with two lines`);
    seen.slots += lines.length;
    for (const { slot, outcome, why: reason, run_id } of lines) {
      if (outcome === "fired") seen.fired += 1;
      else if (reason === "missed") seen.missed += 1;
      else seen["other skips"] += 1;
      if ((outcome === "fired") !== (run_id !== null))
        broken.push(`${schedule.name} ${slot}: ${outcome}, run ${run_id}`);
      if (run_id === null) continue;
      if (ofRun.has(run_id))
        broken.push(`run ${run_id} has two slots: ${ofRun.get(run_id)} and ${schedule.name} ${slot}`);
      ofRun.set(run_id, `${schedule.name} ${slot}`);
    }
  }
  const runs = await readAllRuns(testbed.client);
  seen.runs = runs.length;
  const known = new Set(runs.map(({ run_id }) => run_id));
  for (const { run_id, trigger_type, schedule } of runs) {
    if (!ofRun.has(run_id)) broken.push(`run ${run_id} of ${schedule} has no slot`);
    if (trigger_type !== "schedule") broken.push(`run ${run_id} is of trigger_type ${trigger_type}`);
  }
  for (const [run_id, slot] of ofRun) if (!known.has(run_id)) broken.push(`the run ${run_id} of ${slot} is missing`);
  if (seen.fired === 0) broken.push("nothing was fired");
  for (const { child } of testbed.coordinators)
    if (!child.alive) broken.push(`a coordinator exited on its own: ${child.output}`);
  return { seen, broken, late: [] };
}

async function readHistory({ client }: Testbed, { schedule_id }: Schedule): Promise<Slot[]> {
  const all: Slot[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await retryWhileUnreachable(() =>
      client.schedules.history(schedule_id, { limit: 1000, ...(cursor ? { cursor } : {}) }),
    );
    all.push(...page.items);
    cursor = page.next_cursor;
    await pause(0);
  }
  return all;
}
