import { StringDecoder } from "node:string_decoder";
import type { RunEvent } from "../../model/event.ts";
import type { Delta } from "../../model/executor.ts";
import type { Redactor, RedactStream } from "../../model/process.ts";

/** Redacts the partial text of an agent's message, across chunks, on its way to people who follow the run. */
export interface PartialText {
  push(delta: Delta): void;
  /** Drops text that was held back as a possible secret: the complete message contains it. */
  completeMessage(event: RunEvent): void;
}

export function createPartialText(redactor: Redactor, send: (delta: Delta) => void): PartialText {
  const streams = new Map<string, { redaction: RedactStream; decoder: StringDecoder }>();
  return {
    push({ kind, text }) {
      const stream = streams.get(kind) ?? { redaction: redactor.stream(), decoder: new StringDecoder("utf8") };
      streams.set(kind, stream);
      const redacted = stream.decoder.write(Buffer.from(stream.redaction.push(Buffer.from(text))));
      if (redacted !== "") send({ kind, text: redacted });
    },
    // Keep the streams of other kinds: this event may arrive in the middle of one of their messages.
    completeMessage: ({ type }) => void streams.delete(type),
  };
}
