import { defer } from "./deferred.ts";
import type { UserMessage } from "./sdk.ts";

/** Feeds the user's messages to the SDK. It stays open until it is ended, because the SDK waits for more. */
export class Inbox implements AsyncIterable<UserMessage> {
  readonly #queue: { content: string; uuid?: string }[] = [];
  #arrived = defer<void>();
  #ended = false;

  /** `uuid` identifies the message in Claude Code's transcript. */
  add(content: string, uuid?: string): void {
    this.#queue.push({ content, ...(uuid === undefined ? {} : { uuid }) });
    this.#arrived.resolve();
  }

  /** Messages already in the queue are still delivered. */
  end(): void {
    this.#ended = true;
    this.#arrived.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<UserMessage> {
    for (;;) {
      await this.#arrived.promise;
      this.#arrived = defer<void>();
      for (const { content, ...id } of this.#queue.splice(0))
        yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null, ...id };
      if (this.#ended && this.#queue.length === 0) return;
    }
  }
}
