import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Done } from "../../scaffold/define-executor.ts";
import type { ConversationFile } from "./definition.ts";

export const conversationFormat = "drover-client-1";

export interface SavedConversation {
  /** The client that wrote these files. */
  client: string;
  /** The run that saved the conversation, and its result. */
  run_id: string;
  done: Done | null;
  /** The session's own file first, then the files it refers to. */
  files: ConversationFile[];
}

/**
 * Writes a line of JSON, followed by the files. Redaction changes the files' lengths afterwards, so each file starts
 * with a unique boundary line instead of a length.
 */
export function packConversation({ files, ...head }: SavedConversation): Buffer {
  const boundary = randomUUID();
  const parts = files.flatMap(({ name, bytes }) => [`\n${boundary} ${JSON.stringify(name)}\n`, bytes]);
  return Buffer.concat([JSON.stringify({ ...head, boundary }), ...parts].map((part) => Buffer.from(part)));
}

const headSchema = z.object({
  client: z.string(),
  run_id: z.string(),
  boundary: z.uuid(),
  // The coordinator validates it, like every outcome.
  done: z.custom<Done>((value) => typeof value === "object").nullable(),
});

/** Returns null if packConversation did not write these bytes. */
export function unpackConversation(packed: Uint8Array): SavedConversation | null {
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  try {
    const end = bytes.indexOf("\n");
    const { boundary, ...head } = headSchema.parse(JSON.parse(bytes.toString("utf8", 0, end < 0 ? undefined : end)));
    const fileStart = Buffer.from(`\n${boundary} `);
    const files: ConversationFile[] = [];
    for (let start = bytes.indexOf(fileStart); start >= 0;) {
      const nameEnd = bytes.indexOf("\n", start + 1);
      const next = bytes.indexOf(fileStart, nameEnd);
      const name = z.string().parse(JSON.parse(bytes.toString("utf8", start + fileStart.length, nameEnd)));
      files.push({ name, bytes: bytes.subarray(nameEnd + 1, next < 0 ? undefined : next) });
      start = next;
    }
    return { ...head, files };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}
