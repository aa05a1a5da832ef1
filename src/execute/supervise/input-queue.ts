import type { UserInput } from "../../model/executor.ts";

/** What a person says while the run goes on: kept until it is read, ended with the run. */
export interface InputQueue extends AsyncIterable<UserInput> {
  push(input: UserInput): void;
  end(): void;
}

export function createInputQueue(first: readonly UserInput[] = []): InputQueue {
  const waiting = [...first];
  let ended = false;
  let wake: (() => void) | null = null;
  const change = (): void => {
    wake?.();
    wake = null;
  };
  return {
    push(input) {
      if (!ended) waiting.push(input);
      change();
    },
    end() {
      ended = true;
      change();
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
