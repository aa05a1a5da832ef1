import { expect, test } from "vitest";
import { createSingleFlight } from "./single-flight.ts";

function createControlledWork() {
  const started: { signal: AbortSignal; end(value: string): void }[] = [];
  const join = createSingleFlight(
    (signal) =>
      new Promise<string>((resolve, reject) => {
        started.push({ signal, end: resolve });
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
  );
  return { started, join };
}

const expectStarted = (started: readonly unknown[], count: number) => expect.poll(() => started.length).toBe(count);

test("shares the result among concurrent callers, and starts again for later ones", async () => {
  const { started, join } = createControlledWork();
  const calls = [join(new AbortController().signal), join(new AbortController().signal)];
  await expectStarted(started, 1);
  started[0]!.end("first");
  expect(await Promise.all(calls)).toEqual(["first", "first"]);
  const laterCall = join(new AbortController().signal);
  await expectStarted(started, 2);
  started[1]!.end("second");
  expect(await laterCall).toBe("second");
});

test("continues while any caller waits, and aborts when the last one leaves", async () => {
  const { started, join } = createControlledWork();
  const [first, second] = [new AbortController(), new AbortController()];
  const calls = [join(first.signal), join(second.signal)];
  const settled = Promise.allSettled(calls);
  await expectStarted(started, 1);
  first.abort(new Error("left"));
  await expect(calls[0]).rejects.toThrow("left");
  expect(started[0]!.signal.aborted).toBe(false);
  second.abort(new Error("left too"));
  await expect(calls[1]).rejects.toThrow("left too");
  expect(started[0]!.signal.aborted).toBe(true);
  await settled;
  const result = join(new AbortController().signal);
  await expectStarted(started, 2);
  started[1]!.end("third");
  expect(await result).toBe("third");
});
