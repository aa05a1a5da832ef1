import { expect, it } from "vitest";
import { eachEngine } from "../../../test/fixtures/record/each-engine.ts";
import { executionEnded, executionStarted, sampleId } from "../../../test/fixtures/record/sample.ts";
import { exportFrom } from "./export.ts";

const times = [
  "0001-01-01T00:00:00.000Z",
  "2001-01-01T00:00:00.000Z",
  "2026-02-28T11:59:00.000Z",
  "2026-03-02T12:00:00.000Z",
  "2099-12-31T23:59:59.999Z",
  "9999-12-31T23:59:59.999Z",
  "2026-03-01T12:00:00+14:00",
  "2026-03-01T16:00:00",
  "NaN",
  "~",
  "",
];

eachEngine("a runner's clock", (record) => {
  it.each(times)("that says %j hides no execution from an export, and is reported as doubtful", async (claimedTime) => {
    const { driver, store } = record;
    const run_id = await driver.submit({ demands: { runner_id: "r" } });
    const runner = await driver.register("r");
    await driver.claim(runner);
    record.advance(1000);
    const since = record.now().toISOString();
    const id = sampleId();
    const events = [
      { n: 1, at: claimedTime, event: executionStarted(id, { started_at: claimedTime }) },
      { n: 2, at: claimedTime, event: executionEnded(id, { ended_at: claimedTime }) },
    ];
    expect(await store.apply([{ op: "append_events", run_id, attempt: 1, runner, events }])).toMatchObject([
      { ok: true },
    ]);
    record.advance(1000);
    const until = record.now().toISOString();

    const readExport = async (range: object) => {
      const lines: object[] = [];
      await exportFrom(store.engine, range, (line) => void lines.push(JSON.parse(line) as object));
      return lines;
    };
    expect(await readExport({ since, until })).toMatchObject([
      { executionId: id, timestamp: claimedTime, recordedAt: since, endRecordedAt: since, clockDoubtful: true },
    ]);
    expect(await readExport({ until: since })).toEqual([]);
    expect(await readExport({ since: until })).toEqual([]);

    expect(await store.read.execution(id)).toMatchObject({ received_at: since, end_received_at: since });
    const stored = (await store.read.events(run_id, 0, 10)).filter(({ n }) => n !== null);
    expect(stored).toMatchObject([
      { at: claimedTime, received_at: since },
      { at: claimedTime, received_at: since },
    ]);
    const run = await store.read.run(run_id);
    expect(Date.parse(run!.started_at!)).toBeGreaterThanOrEqual(Date.parse(run!.claimed_at!));
    expect(Date.parse(run!.started_at!)).toBeLessThanOrEqual(Date.parse(since));
  });

  it("is not reported as doubtful if it is correct, even if its events arrive late", async () => {
    const { driver, store } = record;
    const run_id = await driver.submit({ demands: { runner_id: "r" } });
    const runner = await driver.register("r");
    await driver.claim(runner);
    const [startedAt, id] = [record.now().toISOString(), sampleId()];
    record.advance(5000);
    const events = [{ n: 1, at: startedAt, event: executionStarted(id, { started_at: startedAt }) }];
    await store.apply([{ op: "append_events", run_id, attempt: 1, runner, events }]);
    const lines: string[] = [];
    await exportFrom(store.engine, {}, (line) => void lines.push(line));
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { timestamp: startedAt, recordedAt: record.now().toISOString(), clockDoubtful: false },
    ]);
    expect((await store.read.run(run_id))?.started_at).toBe(startedAt);
  });
});
