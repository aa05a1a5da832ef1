import type { UserInput } from "../../model/executor.ts";

/** Messages from a person to a run in progress. They are queued until the executor reads them. */
export interface InputQueue extends AsyncIterable<UserInput> {
  push(input: UserInput): void;
  end(): void;
}

export function createInputQueue(first: readonly UserInput[] = []): InputQueue {
  const waiting = [...first];
  let ended = false;
  let wake: (() => void) | null = null;
  const wakeReader = (): void => {
    wake?.();
    wake = null;
  };
  return {
    push(input) {
      if (!ended) waiting.push(input);
      wakeReader();
    },
    end() {
      ended = true;
      wakeReader();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = waiting.shift();
        if (next) yield next;
        else if (ended) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
