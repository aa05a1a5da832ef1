import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { handClock } from "../../test/fixtures/trigger/hand-clock.ts";
import { emptyRecord } from "../../test/postgres/empty-record.ts";
import type { CoordinatorOptions } from "../coordinator.ts";
import type { Outcome } from "../model/executor.ts";
import { createClient } from "../wire/client.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const secret = Buffer.alloc(32, 7);
const pollOptions = { timeout: 30_000 };
type Body = Parameters<TestCoordinator["client"]["schedules"]["create"]>[0];

/** Starts a coordinator with a manual trigger clock. `startAnother` starts another one on the same record. */
async function setUp(engine: "SQLite" | "PostgreSQL", options: Partial<CoordinatorOptions> = {}) {
  const clock = handClock("2026-01-01T00:00:30.000Z");
  const record = engine === "PostgreSQL" ? await emptyRecord(secret) : null;
  cleanups.push(async () => record?.drop());
  const base: Partial<CoordinatorOptions> = { leaseMs: 600_000, triggerClock: () => clock, ...options };
  const database = record && { url: record.url, secret };
  const coordinator = await startTestCoordinator({ ...base, database });
  cleanups.push(() => coordinator.dispose());
  const startAnother = async (): Promise<TestCoordinator> => {
    const recordOptions = database ? {} : { stateDirectory: coordinator.directory };
    const other = await startTestCoordinator({ ...base, database, ...recordOptions });
    cleanups.push(() => other.dispose());
    return other;
  };
  const { client } = coordinator;
  await client.agents.put("noop", { type: "procedural", command: "true" });
  const create = (body: Partial<Body> = {}) =>
    client.schedules.create({ agent_name: "noop", name: "s", cron: "* * * * *", ...body });
  return { coordinator, client, clock, create, startAnother };
}

/** Returns the history as "HH:MM outcome" or "HH:MM why", oldest first. */
async function readHistory(client: TestCoordinator["client"], schedule_id: string): Promise<string[]> {
  const { items } = await client.schedules.history(schedule_id, { limit: 1000 });
  return items.toReversed().map(({ slot, outcome, why }) => `${slot.slice(11, 16)} ${why ?? outcome}`);
}

describe.each(["SQLite", "PostgreSQL"] as const)("on %s", (engine) => {
  test("starts one run for each slot, owned by the schedule's owner and naming the schedule", async () => {
    const { client, clock, create } = await setUp(engine);
    const { schedule_id, next } = await create({ overlap: "allow", prompt: "go" });
    expect(next.map((at) => at.slice(11, 16))).toEqual(["00:01", "00:02", "00:03", "00:04", "00:05"]);
    clock.advance(30_000);
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(["00:01 fired"]);
    clock.advance(60_000);
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(["00:01 fired", "00:02 fired"]);
    const { items } = await client.runs.list();
    expect(items).toMatchObject([1, 2].map(() => ({ trigger_type: "schedule", schedule: "s", created_by: "admin" })));
    expect(await client.schedules.get(schedule_id)).toMatchObject({
      last: { outcome: "fired", run_id: items[0]?.run_id, run_status: "pending" },
      next: [expect.stringContaining("00:03"), ...Array.from({ length: 4 }, () => expect.any(String))],
    });
  });

  test("shows a failed run as failed, in the history and as the last slot", async () => {
    const { coordinator, client, clock, create } = await setUp(engine);
    const { schedule_id } = await create();
    clock.advance(30_000);
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toHaveLength(1);
    await finishNextRun(coordinator, { status: "failed", reason: "exit_nonzero", message: "no", exit_code: 1 });
    const failedSlot = { outcome: "fired", run_status: "failed", run_reason: "exit_nonzero" };
    expect((await client.schedules.history(schedule_id)).items).toMatchObject([failedSlot]);
    expect((await client.schedules.get(schedule_id)).last).toMatchObject(failedSlot);
    expect((await client.schedules.list()).items[0]?.last).toMatchObject(failedSlot);
  });

  test.each([
    ["skip", ["00:01 fired", "00:02 overlap"], ["pending"]],
    ["queue", ["00:01 fired", "00:02 fired"], ["pending", "pending"]],
    ["cancel_previous", ["00:01 fired", "00:02 fired"], ["pending", "cancelled"]],
    ["allow", ["00:01 fired", "00:02 fired"], ["pending", "pending"]],
  ] as const)("applies the overlap policy %s while the last run is unfinished", async (overlap, lines, statuses) => {
    const { client, clock, create } = await setUp(engine);
    const { schedule_id } = await create({ overlap });
    for (const count of [1, 2]) {
      clock.advance(count === 1 ? 30_000 : 60_000);
      await expect.poll(() => readHistory(client, schedule_id), pollOptions).toHaveLength(count);
    }
    expect(await readHistory(client, schedule_id)).toEqual(lines);
    const { items } = await client.runs.list();
    expect(items.map(({ status }) => status)).toEqual(statuses);
    const [newest] = items;
    const { why } = await client.runs.why(newest!.run_id);
    expect(why.some(({ demand }) => demand === "schedule")).toBe(overlap === "queue");
  });

  test.each([
    ["none", "00:59 missed"],
    ["one", "00:59 fired"],
  ] as const)("after an hour without a coordinator, catch_up %s makes the last slot %s", async (catch_up, last) => {
    const { coordinator, clock, create, startAnother } = await setUp(engine);
    const { schedule_id } = await create({ catch_up, cron: "19-59/20 * * * *" });
    await coordinator.stop();
    clock.set("2026-01-01T01:10:00.000Z");
    const { client } = await startAnother();
    const slots = ["00:19 missed", "00:39 missed", last];
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(slots);
    expect((await client.runs.list()).items).toHaveLength(catch_up === "one" ? 1 : 0);
    clock.set("2026-01-01T01:19:00.000Z");
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toHaveLength(4);
  });

  test("starts the run of a slot that is less than a minute late, after a restart", async () => {
    const { coordinator, clock, create, startAnother } = await setUp(engine);
    const { schedule_id } = await create();
    await coordinator.stop();
    clock.set("2026-01-01T00:01:50.000Z");
    const { client } = await startAnother();
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(["00:01 fired"]);
    await client.runs.stopMany({ all: true });
    clock.set("2026-01-01T00:02:00.000Z");
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(["00:01 fired", "00:02 fired"]);
  });

  test("records each slot a clock jumps over, and repeats none when it goes back", async () => {
    const { client, clock, create } = await setUp(engine);
    const { schedule_id } = await create({ cron: "*/15 * * * *", overlap: "allow" });
    clock.set("2026-01-01T01:00:10.000Z");
    const jumpedSlots = ["00:15 missed", "00:30 missed", "00:45 missed", "01:00 fired"];
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(jumpedSlots);
    clock.set("2026-01-01T00:14:59.000Z");
    for (const time of ["00:15:00", "00:30:10", "01:00:10", "01:14:59"]) clock.set(`2026-01-01T${time}.000Z`);
    clock.set("2026-01-01T01:15:00.000Z");
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual([...jumpedSlots, "01:15 fired"]);
    expect((await client.runs.list()).items).toHaveLength(2);
  });

  test("records slots of a disabled schedule as disabled, and still runs it on request", async () => {
    const { client, clock, create } = await setUp(engine);
    const { schedule_id } = await create();
    expect(await client.schedules.change(schedule_id, { enabled: false })).toMatchObject({ enabled: false, next: [] });
    clock.advance(30_000);
    await expect.poll(() => readHistory(client, schedule_id), pollOptions).toEqual(["00:01 disabled"]);
    expect(await client.schedules.run(schedule_id)).toMatchObject({ trigger_type: "manual", schedule: "s" });
    const { items } = await client.schedules.history(schedule_id);
    expect(items.find(({ manual }) => manual)).toMatchObject({ outcome: "fired", run_status: "pending" });
    expect(await client.schedules.change(schedule_id, { enabled: true })).toMatchObject({ enabled: true });
  });

  test("records why a slot was refused or that its agent is gone, and still runs other schedules", async () => {
    const { client, clock, create } = await setUp(engine);
    await client.agents.put("picky", { type: "procedural", command: "true" });
    const { schedule_id: unknownAgentSchedule } = await create({ name: "gone" });
    const { schedule_id: refused } = await create({ name: "refused", agent_name: "picky", parameters: { a: 1 } });
    await client.agents.put("still", { type: "procedural", command: "true" });
    const { schedule_id: still } = await create({ name: "still", agent_name: "still" });
    await client.agents.remove("noop");
    const parameters_schema = { type: "object", additionalProperties: false, properties: { b: { type: "string" } } };
    await client.agents.put("picky", { type: "procedural", command: "true", parameters_schema });
    clock.advance(30_000);
    await expect.poll(() => readHistory(client, unknownAgentSchedule), pollOptions).toEqual(["00:01 agent_gone"]);
    await expect.poll(() => readHistory(client, refused), pollOptions).toEqual(["00:01 refused"]);
    await expect.poll(() => readHistory(client, still), pollOptions).toEqual(["00:01 fired"]);
    expect((await client.schedules.get(refused)).last?.detail).toMatch(/DROVER-PAR-001.*parameters\.a/);
    expect((await client.schedules.get(unknownAgentSchedule)).last?.detail).toMatch(
      /DROVER-SUB-001: There is no agent noop/,
    );
    expect((await client.runs.list()).items).toMatchObject([{ agent_name: "still" }]);
  });

  test("resume_session continues the session, and starts a new one if it is gone", async () => {
    const { client, clock, create } = await setUp(engine);
    await client.agents.put("chat", { type: "autonomous", executor: "procedural" });
    const { schedule_id } = await create({ agent_name: "chat", resume_session: true, prompt: "go", overlap: "queue" });
    const runNextSlot = async (count: number) => {
      clock.advance(count === 1 ? 30_000 : 60_000);
      await expect.poll(() => readHistory(client, schedule_id), pollOptions).toHaveLength(count);
      return client.runs.get((await client.schedules.get(schedule_id)).last_run_id!);
    };
    const [first, second] = [await runNextSlot(1), await runNextSlot(2)];
    expect([first.mode, second.mode]).toEqual(["start", "resume"]);
    expect(second.session_id).toBe(first.session_id);
    await client.runs.stopMany({ all: true });
    await client.sessions.remove(first.session_id!);
    const third = await runNextSlot(3);
    expect(third).toMatchObject({ mode: "start", status: "pending" });
    expect(third.session_id).not.toBe(first.session_id);
  });

  test("keeps schedules of agent files as long as their agents", async () => {
    const directory = mkdtempSync(join(tmpdir(), "drover-agents-"));
    cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
    const file = join(directory, "report.yaml");
    const write = (cron: string) => {
      const text = `name: report\ncommand: "true"\nschedules:\n  - name: nightly\n    cron: "${cron}"\n`;
      writeFileSync(file, text);
    };
    write("* * * * *");
    const { coordinator, clock, startAnother } = await setUp(engine, {
      agentsDirectory: directory,
      onAgentFaults: () => undefined,
    });
    const listSchedules = async () => (await coordinator.client.schedules.list({ agent_name: "report" })).items;
    await expect
      .poll(listSchedules, pollOptions)
      .toMatchObject([{ name: "nightly", source: "file", cron: "* * * * *" }]);
    const [{ schedule_id } = { schedule_id: "" }] = await listSchedules();
    clock.advance(30_000);
    await expect.poll(() => readHistory(coordinator.client, schedule_id), pollOptions).toEqual(["00:01 fired"]);
    await coordinator.client.schedules.change(schedule_id, { enabled: false });
    await expect(coordinator.client.schedules.change(schedule_id, { prompt: "x" })).rejects.toThrow(
      /defines the schedule/,
    );
    await expect(coordinator.client.schedules.remove(schedule_id)).rejects.toThrow(/defines the schedule/);
    write("30 * * * *");
    await expect.poll(listSchedules, pollOptions).toMatchObject([{ schedule_id, cron: "30 * * * *", enabled: false }]);
    // A typo in the file removes nothing.
    write("61 * * * *");
    await coordinator.stop();
    const restarted = await startAnother();
    expect((await restarted.client.schedules.list({ agent_name: "report" })).items).toMatchObject([{ schedule_id }]);
    write("30 * * * *");
    await expect
      .poll(() => restarted.client.agents.list().then(({ items }) => items.map(({ name }) => name)), pollOptions)
      .toContain("report");
    unlinkSync(file);
    await expect
      .poll(() => restarted.client.schedules.list({ agent_name: "report" }).then(({ items }) => items), pollOptions)
      .toEqual([]);
  });

  test("adds and removes schedules together with agents that the API creates and removes", async () => {
    const { client } = await setUp(engine);
    const schedules = [{ name: "hourly", every: "1h" }];
    await client.agents.put("keeper", { type: "procedural", command: "true", schedules });
    expect((await client.schedules.list()).items).toMatchObject([
      { name: "hourly", source: "agent", agent_name: "keeper", created_by: "admin" },
    ]);
    await client.agents.remove("keeper");
    expect((await client.schedules.list()).items).toEqual([]);
  });
});

test("starts each slot's run once with two coordinators on one database", async () => {
  const { client, clock, create, startAnother } = await setUp("PostgreSQL");
  const other = await startAnother();
  const ids = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => (await create({ name: `s${index}`, overlap: "allow" })).schedule_id),
  );
  for (const minutes of [1, 2, 3]) {
    clock.advance(minutes === 1 ? 30_000 : 60_000);
    for (const id of ids) await expect.poll(() => readHistory(other.client, id), pollOptions).toHaveLength(minutes);
  }
  expect((await client.runs.list({ limit: 1000 })).items).toHaveLength(90);
  for (const id of ids) expect(await readHistory(client, id)).toEqual(["00:01 fired", "00:02 fired", "00:03 fired"]);
});

test("lets users see and change only their own schedules", async () => {
  const { coordinator, client, create } = await setUp("SQLite");
  const createUser = async (subject: string) => {
    const { token } = await client.tokens.create({ role: "user", subject });
    return createClient({ url: coordinator.url, token });
  };
  const [ann, bob] = [await createUser("ann"), await createUser("bob")];
  const { schedule_id } = await ann.schedules.create({ agent_name: "noop", name: "of-ann", every: "1h" });
  await create({ name: "admins" });
  expect((await ann.schedules.list()).items).toMatchObject([{ schedule_id, created_by: "ann" }]);
  expect((await bob.schedules.list()).items).toEqual([]);
  expect((await client.schedules.list()).items).toHaveLength(2);
  for (const ask of [
    () => bob.schedules.get(schedule_id),
    () => bob.schedules.change(schedule_id, { enabled: false }),
    () => bob.schedules.run(schedule_id),
    () => bob.schedules.history(schedule_id),
    () => bob.schedules.remove(schedule_id),
  ])
    await expect(ask()).rejects.toMatchObject({ code: "DROVER-API-014" });
  expect(await ann.schedules.run(schedule_id)).toMatchObject({ created_by: "ann" });
  await ann.schedules.remove(schedule_id);
  expect((await ann.schedules.list()).items).toEqual([]);
});

test.each([
  [{ cron: "0 0 * * * *" }, "DROVER-SCH-001", /has 6 fields, not five/],
  [{ cron: "0 0 30 2 *" }, "DROVER-SCH-001", /never occurs/],
  [{ cron: "0 9 * * *", timezone: "Europe/Berln" }, "DROVER-SCH-001", /Did you mean Europe\/Berlin/],
  [{ every: "5s" }, "DROVER-SCH-001", /less than 10s/],
  [{ every: "1h", cron: "0 0 * * *" }, "DROVER-API-006", /either cron or every/],
  [{}, "DROVER-API-006", /either cron or every/],
  [{ every: "1h", agent_name: "nop" }, "DROVER-SUB-001", /Did you mean noop/],
  [{ every: "1h", resume_session: true }, "DROVER-SUB-002", /Procedural/],
  [{ every: "1h", overlap: "sometimes" }, "DROVER-API-006", /overlap/],
])("refuses the schedule %j", async (wrong, code, message) => {
  const { client } = await setUp("SQLite");
  const body = { agent_name: "noop", name: "s", ...wrong } as Body;
  const error: unknown = await client.schedules.create(body).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code });
  expect(JSON.stringify({ ...(error as object), text: String(error) })).toMatch(message);
  expect((await client.schedules.list()).items).toEqual([]);
});

test("changes a schedule, previews slots, and pages through the list", async () => {
  const { client, create } = await setUp("SQLite");
  const { schedule_id } = await create({ prompt: "a" });
  const changed = await client.schedules.change(schedule_id, { every: "2h", prompt: null });
  expect(changed).toMatchObject({ cron: null, every: "2h", prompt: null, timezone: "UTC" });
  expect(changed.next.slice(0, 2)).toEqual(["2026-01-01T02:00:30.000Z", "2026-01-01T04:00:30.000Z"]);
  await expect(client.schedules.change(schedule_id, { cron: "0 0 31 6 *" })).rejects.toMatchObject({
    code: "DROVER-SCH-001",
  });
  await expect(create()).rejects.toMatchObject({ code: "DROVER-SCH-003" });
  const request = { cron: "30 2 * * *", timezone: "Europe/Berlin", from: "2026-03-28T12:00:00Z", count: 2 };
  expect(await client.schedules.preview(request)).toEqual({
    timezone: "Europe/Berlin",
    next: ["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"],
  });
  await create({ name: "t" });
  const first = await client.schedules.list({ limit: 1 });
  const second = await client.schedules.list({ limit: 1, cursor: first.next_cursor! });
  expect(new Set([...first.items, ...second.items].map(({ name }) => name))).toEqual(new Set(["s", "t"]));
  expect(second.next_cursor).toBeNull();
});

/** Claims the next run as a runner, and finishes it with this outcome. */
async function finishNextRun({ port }: TestCoordinator, outcome: Outcome): Promise<void> {
  const { runner_id, epoch } = await port.register(registration("hand"));
  const poll = { runner_id, epoch, claim_id: "c1", want: 1, ack_order: 0 };
  const { claims } = await port.poll(poll, AbortSignal.timeout(20_000));
  const [{ run_id, attempt } = { run_id: "", attempt: 0 }] = claims;
  const rest = { held: [], as_of_claim: null, events: [], partials: [] };
  await port.report({ runner_id, epoch, ...rest, finishes: [{ run_id, attempt, last_n: 0, outcome }] });
}
