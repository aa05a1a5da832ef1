import fc from "fast-check";
import { expect, it } from "vitest";
import { isAssigned, hasEnded, statusSets } from "../../src/model/states.ts";
import { createAgent, drive, type DrivenRunner } from "../fixtures/dispatch/drive.ts";
import type { OpenedForDispatch } from "./each-with-store.ts";

type Step =
  | { do: "submit"; attempts: number; capped: boolean; directory: string | null }
  | { do: "claim"; runner: number; want: number; sameId: boolean }
  | { do: "append" | "wait" | "resume" | "finish" | "drain" | "crash"; pick: number }
  | { do: "beat"; runner: number; forget: boolean }
  | { do: "late" }
  | { do: "stop"; pick: number }
  | { do: "expire" | "restart" | "leave"; runner: number };

const runner = fc.nat({ max: 2 });
const pick = fc.nat({ max: 50 });
const arbitraryStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      attempts: fc.integer({ min: 1, max: 3 }),
      capped: fc.boolean(),
      directory: fc.constantFrom(null, "/p", "/q"),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      runner,
      want: fc.integer({ min: 0, max: 3 }),
      sameId: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(...(["append", "wait", "resume", "finish", "drain", "crash"] as const)),
      pick,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("beat" as const), runner, forget: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("late" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("expire" as const, "restart" as const, "leave" as const), runner }),
  },
);

/** Events that a runner may report for its run. */
const runnerEvents = {
  append: { type: "progress", percent: 10 },
  wait: { type: "status", status: "waiting", reason: "approval" },
  resume: { type: "status", status: "running" },
} as const;

/** One attempt at a run, as it was handed out. Most become stale sooner or later. */
interface Handout {
  runner: number;
  run_id: string;
  attempt: number;
  sent: number;
}

/** A report, and how many attempts had been handed out when it was made. */
interface Report {
  at: DrivenRunner;
  held: [string, number][];
  as_of_claim: string | null;
  handouts: number;
}

/** Whatever happens in any order, with each request sent up to three times: no run is lost, and none ends twice. */
export function dispatchModelContract(name: string, open: () => Promise<OpenedForDispatch>, numRuns: number): void {
  it(`${name} loses no run and ends none twice, whatever happens in whatever order`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(arbitraryStep, fc.integer({ min: 1, max: 3 })), { minLength: 5, maxLength: 60 }),
        async (steps) => {
          const opened = await open();
          try {
            await play(opened, steps);
          } finally {
            await opened.dispose();
          }
        },
      ),
      { numRuns, endOnFailure: false },
    );
  });
}

async function play(opened: OpenedForDispatch, steps: [Step, number][]): Promise<void> {
  const { store } = opened;
  const driver = drive(store, opened.now);
  const runs: string[] = [];
  const handouts: Handout[] = [];
  const owners = new Map<string, number>();
  const beginnings = new Map<string, string>();
  const runners: (DrivenRunner | null)[] = [];
  /** The claim id that a runner polls with: a new one after claims, or always the same, as with an older runner. */
  const claimIds = ["a0", "b0", "c0"];
  /** The last id that was answered with claims since registration. Reports are made as of it. */
  const closed: (string | null)[] = [null, null, null];
  const reports: Report[][] = [[], [], []];
  for (const index of [0, 1, 2]) runners[index] = await driver.register(`r${index}`);

  for (const [step, times] of steps) {
    for (let time = 0; time < times; time += 1) await take(step, time);
    await expectEffects();
  }
  await quiesce();
  for (const run_id of runs) await checkEnd(run_id);

  async function take(step: Step, time: number): Promise<void> {
    switch (step.do) {
      case "submit": {
        if (time > 0) return;
        const agent = createAgent(step.capped ? "capped" : "free", {
          max_attempts: step.attempts,
          ...(step.directory === null ? {} : { type: "autonomous", command: null }),
          ...(step.capped ? { max_concurrent: 2 } : {}),
        });
        runs.push(await driver.submit({ project_dir: step.directory }, agent));
        return;
      }
      case "claim": {
        const driven = await alive(step.runner);
        if (time === 0 && (!step.sameId || closed[step.runner] === claimIds[step.runner])) claimIds[step.runner] += "'";
        const claim_id = claimIds[step.runner] ?? "";
        if (time === 0) report(driven, step.runner, false);
        const runBefore = await cappedAtWork();
        const poller = await store.read.poller({ ...driven, claim_id, want: step.want });
        const { claims, orders } = await driver.poll(driven, step.want, claim_id);
        // A poll that waits without writing must not have anything to fetch.
        if ("conflict" in poller || poller.idle)
          expect([poller, claims, orders]).toMatchObject([{ idle: true }, [], []]);
        if (claims.length > 0) closed[step.runner] = claim_id;
        for (const { run_id, attempt } of claims) {
          const key = `${run_id} ${attempt}`;
          // An attempt belongs to one runner forever.
          expect(owners.get(key) ?? step.runner).toBe(step.runner);
          if (!owners.has(key)) handouts.push({ runner: step.runner, run_id, attempt, sent: 0 });
          owners.set(key, step.runner);
        }
        // Runs that waited for a person return to work without asking, and may exceed the cap.
        expect(await cappedAtWork()).toBeLessThanOrEqual(Math.max(2, runBefore));
        await expectAlone();
        return;
      }
      case "append":
      case "wait":
      case "resume":
      case "finish":
      case "drain":
      case "crash":
        await write(step.do, handouts[step.pick % Math.max(1, handouts.length)]);
        return;
      case "beat": {
        const driven = await alive(step.runner);
        const { held: heldRuns, as_of_claim } = report(driven, step.runner, step.forget);
        await driver.beat(driven, heldRuns, as_of_claim);
        return;
      }
      case "late":
        for (const index of [0, 1, 2]) await arriveLate(index);
        return;
      case "stop": {
        const run_id = runs[step.pick % Math.max(1, runs.length)];
        if (run_id !== undefined)
          await store.apply([{ op: "stop_runs", run_ids: [run_id], reason: "user", by: "ann" }]);
        return;
      }
      case "expire":
        opened.advance(6_000);
        await store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 2 }]);
        return;
      case "restart":
        runners[step.runner] = await registerAgain(step.runner);
        return;
      case "leave": {
        const driven = runners[step.runner];
        if (driven) await store.apply([{ op: "leave_runner", ...driven }]);
        runners[step.runner] = null;
      }
    }
  }

  async function cappedAtWork(): Promise<number> {
    return (await store.read.runs({ agent_name: "capped", status: [...statusSets.busy] }, { limit: 100 })).length;
  }

  /** What each status requires of a run's columns, however it got there. */
  async function expectEffects(): Promise<void> {
    for (const run of await store.read.runs({}, { limit: 1000 })) {
      const { run_id, attempt, status, started_at, claimed_at, finished_at, runner_id, waiting_for, progress } = run;
      // Plain comparisons instead of `expect`, because there are very many of them.
      const must = (holds: boolean): void => void (holds || expect.fail(`invalid run: ${JSON.stringify(run)}`));
      must((finished_at !== null) === hasEnded(status));
      must((waiting_for !== null) === (status === "waiting"));
      if (status === "pending")
        must(runner_id === null && claimed_at === null && started_at === null && progress === null);
      if (isAssigned(status)) must(runner_id !== null && claimed_at !== null);
      if (status === "running" || status === "waiting") must(started_at !== null);
      if (status === "completed") must(progress === 100);
      // Waiting does not change when a run started.
      const key = `${run_id} ${attempt}`;
      if (started_at !== null && status !== "pending") {
        must((beginnings.get(key) ?? started_at) === started_at);
        beginnings.set(key, started_at);
      }
    }
  }

  /** All runners are on one host, so at most one run works in each directory. */
  async function expectAlone(): Promise<void> {
    const active = await store.read.runs({ status: ["claimed", "running", "waiting", "stopping"] }, { limit: 1000 });
    const directories = active.flatMap(({ project_dir }) => project_dir ?? []);
    expect(directories).toEqual([...new Set(directories)]);
  }

  /** Creates the report that the runner would send now, and keeps it so that it can arrive again later. */
  function report(driven: DrivenRunner, index: number, forget: boolean): Report {
    const heldRuns = handouts
      .filter((handout) => handout.runner === index && !forget)
      .map(({ run_id, attempt }): [string, number] => [run_id, attempt]);
    const newReport = { at: driven, held: heldRuns, as_of_claim: closed[index] ?? null, handouts: handouts.length };
    reports[index] = [...(reports[index] ?? []), newReport].slice(-5);
    return newReport;
  }

  /** Arrives twice, or after the next poll. It takes nothing back that was handed out after it was made. */
  async function arriveLate(index: number): Promise<void> {
    if (closed[index] === claimIds[index]) claimIds[index] += "'";
    await alive(index);
    for (const { at, held: heldRuns, as_of_claim, handouts: runBefore } of reports[index] ?? []) {
      const since = new Set(handouts.slice(runBefore).map(({ run_id, attempt }) => `${run_id} ${attempt}`));
      const result = await driver.beat(at, heldRuns, as_of_claim);
      for (const run_id of result.ok ? result.requeued : [])
        expect(since).not.toContain(`${run_id} ${(await store.read.run(run_id))?.attempt}`);
    }
  }

  /** Accepted exactly if the run belongs to this runner with this attempt. */
  async function write(
    what: keyof typeof runnerEvents | "finish" | "drain" | "crash",
    handout: Handout | undefined,
  ): Promise<void> {
    if (handout === undefined) return;
    const driven = await alive(handout.runner);
    const runBefore = await store.read.run(handout.run_id);
    const current =
      runBefore?.attempt === handout.attempt &&
      runBefore.runner_id === `r${handout.runner}` &&
      !hasEnded(runBefore.status);
    const seqs = (await store.read.events(handout.run_id, 0, 1000)).length;
    const result =
      what in runnerEvents
        ? await driver.append(
            driven,
            handout.run_id,
            handout.attempt,
            handout.sent + 1,
            runnerEvents[what as keyof typeof runnerEvents],
          )
        : await driver.finish(driven, handout.run_id, handout.attempt, {
            last_n: handout.sent,
            ...(what === "finish" ? {} : { give_back: what === "drain" ? "at_no_cost" : "as_failure" }),
          });
    if (current) expect(result.ok).toBe(true);
    if (what in runnerEvents && result.ok) handout.sent = result.last_n;
    if (!current) expect((await store.read.events(handout.run_id, 0, 1000)).length).toBe(seqs);
  }

  async function alive(index: number): Promise<DrivenRunner> {
    const driven = runners[index] ?? (await registerAgain(index));
    runners[index] = driven;
    const [beat] = await store.apply([
      { op: "claim_runs", ...driven, claim_id: claimIds[index] ?? "", want: 0, ack_order: 0, lease_ms: 10_000 },
    ]);
    if (beat.ok) return driven;
    const newRegistration = await registerAgain(index);
    runners[index] = newRegistration;
    return newRegistration;
  }

  async function registerAgain(index: number): Promise<DrivenRunner> {
    claimIds[index] += "'";
    closed[index] = null;
    return driver.register(`r${index}`);
  }

  /** All runners are lost, then one runner finishes everything that is left. */
  async function quiesce(): Promise<void> {
    opened.advance(20_000);
    for (let hasMore = true; hasMore;) {
      const [rescued] = await store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 5 }]);
      hasMore = rescued.ok && rescued.more;
    }
    const lastRunner = await driver.register("last");
    for (let round = 0; ; round += 1) {
      const { claims } = await driver.poll(lastRunner, 10, `last ${round}`);
      for (const { run_id, attempt } of claims)
        expect(await driver.finish(lastRunner, run_id, attempt)).toMatchObject({ ok: true });
      if (claims.length === 0) return;
    }
  }

  async function checkEnd(run_id: string): Promise<void> {
    const run = await store.read.run(run_id);
    expect(run === null ? "gone" : hasEnded(run.status)).toBe(true);
    const events = await store.read.events(run_id, 0, 1000);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter(({ event }) => event.type === "result")).toHaveLength(1);
    expect(events.at(-1)?.event).toMatchObject({ type: "result", status: run?.status });
    const attempts = events.map(({ attempt }) => attempt);
    expect(attempts).toEqual([...attempts].sort((a, b) => a - b));
  }
}
