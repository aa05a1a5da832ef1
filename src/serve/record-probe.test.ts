import { expect, test } from "vitest";
import { createRecordProbe } from "./record-probe.ts";

test("however many ask, the record is asked once, and again when the answer is old", async () => {
  let asked = 0;
  const probe = createRecordProbe(async () => (asked += 1), { freshMs: 50 });
  expect(await Promise.all(Array.from({ length: 100 }, () => probe.fault()))).toEqual(Array(100).fill(null));
  expect([await probe.fault(), asked]).toEqual([null, 1]);
  await expect.poll(async () => (await probe.fault(), asked)).toBe(2);
});

test("a record that says nothing is waited for once, and is well as soon as it answers", async () => {
  let asked = 0;
  let answer: () => void = () => undefined;
  const look = () => ((asked += 1), new Promise<void>((resolve) => (answer = resolve)));
  const probe = createRecordProbe(look, { freshMs: 60_000, patienceMs: 200 });
  const faults = await Promise.all([probe.fault(), probe.fault()]);
  for (const fault of faults) expect(fault).toMatchObject({ code: "DROVER-STA-010" });
  const since = performance.now();
  for (let again = 0; again < 100; again += 1) expect(await probe.fault()).not.toBeNull();
  // each of them would have been 200 ms
  expect(performance.now() - since).toBeLessThan(10_000);
  answer();
  expect([await probe.fault(), asked]).toEqual([null, 1]);
});

test("why it fails is told until it does not", async () => {
  let fault: Error | null = new Error("away");
  const look = async () => {
    if (fault !== null) throw fault;
  };
  const probe = createRecordProbe(look, { freshMs: 1 });
  expect(await probe.fault()).toBe(fault);
  fault = null;
  await expect.poll(() => probe.fault()).toBeNull();
});
