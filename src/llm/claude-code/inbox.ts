import { defer } from "./deferred.ts";
import type { UserMessage } from "./sdk.ts";

/** Feeds the user's messages to the SDK, which waits for more of them until `end` is called. */
export class Inbox implements AsyncIterable<UserMessage> {
  readonly #queue: { content: string; uuid?: string }[] = [];
  #newMessage = defer<void>();
  #isEnded = false;

  /** `uuid` identifies the message in Claude Code's transcript. */
  add(content: string, uuid?: string): void {
    this.#queue.push({ content, ...(uuid === undefined ? {} : { uuid }) });
    this.#newMessage.resolve();
  }

  /** Ends the iteration after the queued messages are delivered. */
  end(): void {
    this.#isEnded = true;
    this.#newMessage.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<UserMessage> {
    for (;;) {
      await this.#newMessage.promise;
      this.#newMessage = defer<void>();
      for (const { content, ...id } of this.#queue.splice(0))
        yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null, ...id };
      if (this.#isEnded && this.#queue.length === 0) return;
    }
  }
}
