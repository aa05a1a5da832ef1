import type { FeedSource } from "../show/feed.ts";
import type { FollowedPartials } from "../show/feed-hub.ts";
import type { BackupFile, McpResponse } from "./deps.ts";

/** What a handler returns where plain data with status 200 (or nothing, 204) does not say it all. */
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

/** A text that is not JSON. */
export class TextReply {
  constructor(
    readonly text: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

/** The bytes of a file as they are read. */
export class BytesReply {
  constructor(
    readonly bytes: NodeJS.ReadableStream & AsyncIterable<Uint8Array>,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

/** Events after a place, and then as they are stored, for as long as the caller stays. */
export class FeedReply {
  constructor(
    readonly source: FeedSource,
    readonly after: number,
    readonly partials?: FollowedPartials,
  ) {}
}

/** A copy of the record that is still being made. */
export class BackupReply {
  constructor(readonly making: Promise<BackupFile>) {}
}

/** An answer that a library made, body and all. */
export class WebReply {
  constructor(readonly answer: McpResponse) {}
}

export type SpecialReply = TextReply | BytesReply | FeedReply | BackupReply | WebReply;

export function created<T>(body: T, headers: Readonly<Record<string, string>> = {}): Reply<T> {
  return new Reply(201, body, headers);
}
