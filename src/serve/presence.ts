import type { ServerResponse } from "node:http";
import { Refusal } from "./refusal.ts";
import type { Stay } from "./standing.ts";
import { whenClosed } from "./when-closed.ts";

/** Whether the caller is still there and may still have the answer. */
export class Presence {
  readonly stay: Stay;
  readonly #outgoing: ServerResponse;
  #leaving: AbortController | null = null;
  #stopWatching: (() => void) | null = null;

  constructor(stay: Stay, outgoing: ServerResponse) {
    this.stay = stay;
    this.#outgoing = outgoing;
    // an answer that is being written, such as a stream of events, is for one who may still read it
    stay.whenRefused(() => {
      this.#leaving?.abort(stay.refused);
      if (outgoing.headersSent && !outgoing.writableEnded) outgoing.destroy();
    });
  }

  /** Made only for those who wait for something. */
  get signal(): AbortSignal {
    if (this.#leaving === null) {
      const leaving = (this.#leaving = new AbortController());
      if (this.stay.refused) leaving.abort(this.stay.refused);
      this.#stopWatching = whenClosed(this.#outgoing, () => leaving.abort(hungUp()));
    }
    return this.#leaving.signal;
  }

  end(): void {
    this.#stopWatching?.();
  }
}

export function hungUp(): Refusal {
  return new Refusal(400, "DROVER-API-029", "The caller hung up.");
}
