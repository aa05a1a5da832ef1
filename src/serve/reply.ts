import type { FeedSource } from "../show/feed.ts";
import type { FollowedPartials } from "../show/feed-hub.ts";
import type { BackupFile, McpResponse } from "./deps.ts";

/** Returned by a handler that needs another status or headers. Plain data means 200, undefined means 204. */
export class Reply<T = unknown> {
  readonly status: number;
  readonly body: T | undefined;
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: number, body?: T, headers: Readonly<Record<string, string>> = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** Text that is not JSON. */
export class TextReply {
  constructor(
    readonly text: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

/** A stream of bytes, such as a file. */
export class BytesReply {
  constructor(
    readonly bytes: NodeJS.ReadableStream & AsyncIterable<Uint8Array>,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

/** Stored events after a position, followed by new ones until the caller disconnects. */
export class FeedReply {
  constructor(
    readonly source: FeedSource,
    readonly after: number,
    readonly partials?: FollowedPartials,
  ) {}
}

/** A copy of the record that is still being made. */
export class BackupReply {
  constructor(readonly backup: Promise<BackupFile>) {}
}

/** A complete response that a library produced. */
export class WebReply {
  constructor(readonly mcp: McpResponse) {}
}

export type SpecialReply = TextReply | BytesReply | FeedReply | BackupReply | WebReply;

export function created<T>(body: T, headers: Readonly<Record<string, string>> = {}): Reply<T> {
  return new Reply(201, body, headers);
}
