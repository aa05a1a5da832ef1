import { expect, test } from "vitest";
import { singleFlight } from "./single-flight.ts";

function heldWork() {
  const begun: { signal: AbortSignal; end(value: string): void }[] = [];
  const join = singleFlight(
    (signal) =>
      new Promise<string>((resolve, reject) => {
        begun.push({ signal, end: resolve });
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
  );
  return { begun, join };
}

const begins = (begun: readonly unknown[], count: number) => expect.poll(() => begun.length).toBe(count);

test("whoever asks while it is under way gets the same answer; who asks later begins anew", async () => {
  const { begun, join } = heldWork();
  const both = [join(new AbortController().signal), join(new AbortController().signal)];
  await begins(begun, 1);
  begun[0]!.end("first");
  expect(await Promise.all(both)).toEqual(["first", "first"]);
  const later = join(new AbortController().signal);
  await begins(begun, 2);
  begun[1]!.end("second");
  expect(await later).toBe("second");
});

test("it goes on for who is left, and is given up when nobody is", async () => {
  const { begun, join } = heldWork();
  const [one, other] = [new AbortController(), new AbortController()];
  const both = [join(one.signal), join(other.signal)];
  const settled = Promise.allSettled(both);
  await begins(begun, 1);
  one.abort(new Error("left"));
  await expect(both[0]).rejects.toThrow("left");
  expect(begun[0]!.signal.aborted).toBe(false);
  other.abort(new Error("left too"));
  await expect(both[1]).rejects.toThrow("left too");
  expect(begun[0]!.signal.aborted).toBe(true);
  await settled;
  const again = join(new AbortController().signal);
  await begins(begun, 2);
  begun[1]!.end("anew");
  expect(await again).toBe("anew");
});
