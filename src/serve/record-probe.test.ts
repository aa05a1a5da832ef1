import { afterEach, expect, test, vi } from "vitest";
import { createRecordProbe } from "./record-probe.ts";

afterEach(() => void vi.useRealTimers());

test("probes the record once for many callers, and again when the result is old", async () => {
  let asked = 0;
  vi.useFakeTimers();
  const probe = createRecordProbe(async () => (asked += 1), { freshMs: 50 });
  expect(await Promise.all(Array.from({ length: 100 }, () => probe.findError()))).toEqual(Array(100).fill(null));
  expect([await probe.findError(), asked]).toEqual([null, 1]);
  vi.advanceTimersByTime(50);
  expect([await probe.findError(), asked]).toEqual([null, 2]);
});

test("waits for a silent record once, and recovers as soon as it responds", async () => {
  let asked = 0;
  let answer: () => void = () => undefined;
  const look = () => ((asked += 1), new Promise<void>((resolve) => (answer = resolve)));
  const probe = createRecordProbe(look, { freshMs: 60_000, timeoutMs: 200 });
  vi.useFakeTimers();
  const asking = Promise.all([probe.findError(), probe.findError()]);
  await vi.advanceTimersByTimeAsync(200);
  const faults = await asking;
  for (const fault of faults) expect(fault).toMatchObject({ code: "DROVER-STA-010" });
  // Time stands still here, so waiting again would never end.
  for (let again = 0; again < 100; again += 1) expect(await probe.findError()).not.toBeNull();
  answer();
  expect([await probe.findError(), asked]).toEqual([null, 1]);
});

test("returns the fault until the record works again", async () => {
  let fault: Error | null = new Error("away");
  const look = async () => {
    if (fault !== null) throw fault;
  };
  const probe = createRecordProbe(look, { freshMs: 1 });
  expect(await probe.findError()).toBe(fault);
  fault = null;
  await expect.poll(() => probe.findError()).toBeNull();
});
