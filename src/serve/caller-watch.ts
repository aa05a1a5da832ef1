import type { ServerResponse } from "node:http";
import { Refusal } from "./refusal.ts";
import type { Watch } from "./token-watch.ts";
import { whenClosed } from "./when-closed.ts";

/** Tracks whether the caller is still connected and its token still valid. */
export class CallerWatch {
  readonly watch: Watch;
  readonly #outgoing: ServerResponse;
  #controller: AbortController | null = null;
  #stopWatching: (() => void) | null = null;

  constructor(watch: Watch, outgoing: ServerResponse) {
    this.watch = watch;
    this.#outgoing = outgoing;
    // A response in progress, such as an event stream, must stop when the token is refused.
    watch.onRefused(() => {
      this.#controller?.abort(watch.refusal);
      if (outgoing.headersSent && !outgoing.writableEnded) outgoing.destroy();
    });
  }

  /** Aborted when the caller disconnects or its token is refused. Created on first use, because few handlers wait. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      const controller = (this.#controller = new AbortController());
      if (this.watch.refusal) controller.abort(this.watch.refusal);
      this.#stopWatching = whenClosed(this.#outgoing, () => controller.abort(callerDisconnected()));
    }
    return this.#controller.signal;
  }

  stop(): void {
    this.#stopWatching?.();
  }
}

export function callerDisconnected(): Refusal {
  return new Refusal(400, "DROVER-API-029", "The caller disconnected.");
}
