import { defer } from "./deferred.ts";
import type { UserMessage } from "./sdk.ts";

/** The messages of the user, as the SDK reads them. It stays open until it is ended: the SDK waits for more. */
export class Inbox implements AsyncIterable<UserMessage> {
  readonly #waiting: { content: string; uuid?: string }[] = [];
  #arrived = defer<void>();
  #ended = false;

  /** `uuid`: its name in Claude Code's transcript. */
  add(content: string, uuid?: string): void {
    this.#waiting.push({ content, ...(uuid === undefined ? {} : { uuid }) });
    this.#arrived.resolve();
  }

  /** Messages that are waiting are still delivered. */
  end(): void {
    this.#ended = true;
    this.#arrived.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<UserMessage> {
    for (;;) {
      await this.#arrived.promise;
      this.#arrived = defer<void>();
      for (const { content, ...name } of this.#waiting.splice(0))
        yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null, ...name };
      if (this.#ended && this.#waiting.length === 0) return;
    }
  }
}
