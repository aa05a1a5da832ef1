import { afterEach, expect, it, vi } from "vitest";
import { createRecordDeadline } from "./record-deadline.ts";

const pendingForever = new Promise<string>(() => undefined);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
afterEach(() => void vi.useRealTimers());
const unexpected = (fault: unknown): void => {
  throw fault;
};

it("passes on results and errors within the deadline", async () => {
  for (const withDeadline of [createRecordDeadline(60_000, unexpected), createRecordDeadline(undefined, unexpected)]) {
    await expect(withDeadline(Promise.resolve("done"))).resolves.toBe("done");
    await expect(withDeadline(Promise.reject(new Error("no")))).rejects.toThrow("no");
  }
});

it("reports a silent record, and later errors to onLate", async () => {
  const timeout = { name: "HostError", code: "DROVER-STA-010" };
  await expect(createRecordDeadline(10, unexpected)(pendingForever)).rejects.toMatchObject(timeout);
  const lateErrors: unknown[] = [];
  let fail!: (fault: Error) => void;
  const slow = new Promise<string>((_, reject) => (fail = reject));
  await expect(createRecordDeadline(10, (fault) => lateErrors.push(fault))(slow)).rejects.toMatchObject(timeout);
  fail(new Error("after all"));
  await expect.poll(() => lateErrors.map(String)).toEqual(["Error: after all"]);
});

it("gives the second operation only the time that the first has left", async () => {
  vi.useFakeTimers();
  const withDeadline = createRecordDeadline(200, unexpected);
  const [first] = await Promise.all([withDeadline(pause(150)).then(() => "in time"), vi.advanceTimersByTimeAsync(150)]);
  expect(first).toBe("in time");
  const second = expect(withDeadline(pause(150))).rejects.toMatchObject({ code: "DROVER-STA-010" });
  await Promise.all([second, vi.advanceTimersByTimeAsync(50)]);
});
