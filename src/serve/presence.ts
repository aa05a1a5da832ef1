import type { ServerResponse } from "node:http";
import { Refusal } from "./refusal.ts";
import type { Watch } from "./token-watch.ts";
import { whenClosed } from "./when-closed.ts";

/** Whether the caller is still there and may still have the answer. */
export class Presence {
  readonly watch: Watch;
  readonly #outgoing: ServerResponse;
  #leaving: AbortController | null = null;
  #stopWatching: (() => void) | null = null;

  constructor(watch: Watch, outgoing: ServerResponse) {
    this.watch = watch;
    this.#outgoing = outgoing;
    // an answer that is being written, such as a stream of events, is for one who may still read it
    watch.whenRefused(() => {
      this.#leaving?.abort(watch.refused);
      if (outgoing.headersSent && !outgoing.writableEnded) outgoing.destroy();
    });
  }

  /** Made only for those who wait for something. */
  get signal(): AbortSignal {
    if (this.#leaving === null) {
      const leaving = (this.#leaving = new AbortController());
      if (this.watch.refused) leaving.abort(this.watch.refused);
      this.#stopWatching = whenClosed(this.#outgoing, () => leaving.abort(callerDisconnected()));
    }
    return this.#leaving.signal;
  }

  end(): void {
    this.#stopWatching?.();
  }
}

export function callerDisconnected(): Refusal {
  return new Refusal(400, "DROVER-API-029", "The caller hung up.");
}
