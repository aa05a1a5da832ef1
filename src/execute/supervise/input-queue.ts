import type { UserInput } from "../../model/executor.ts";

/** Messages from a person to a run in progress. They are queued until the executor reads them. */
export interface InputQueue extends AsyncIterable<UserInput> {
  push(input: UserInput): void;
  end(): void;
}

export function createInputQueue(first: readonly UserInput[] = []): InputQueue {
  const queue = [...first];
  let hasEnded = false;
  let wake: (() => void) | null = null;
  const wakeReader = (): void => {
    wake?.();
    wake = null;
  };
  return {
    push(input) {
      if (!hasEnded) queue.push(input);
      wakeReader();
    },
    end() {
      hasEnded = true;
      wakeReader();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = queue.shift();
        if (next) yield next;
        else if (hasEnded) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
