import { StringDecoder } from "node:string_decoder";
import type { RunEvent } from "../../model/event.ts";
import type { Delta } from "../../model/executor.ts";
import type { Redactor, RedactStream } from "../../model/process.ts";

/** Redacts the partial text of an agent's message, across chunks, on its way to people who follow the run. */
export interface PartialText {
  push(delta: Delta): void;
  /** Drops text that was held back as a possible secret: the complete message contains it. */
  messageComplete(event: RunEvent): void;
}

export function createPartialText(redactor: Redactor, send: (delta: Delta) => void): PartialText {
  const open = new Map<string, { redacting: RedactStream; decoder: StringDecoder }>();
  return {
    push({ kind, text }) {
      const stream = open.get(kind) ?? { redacting: redactor.stream(), decoder: new StringDecoder("utf8") };
      open.set(kind, stream);
      const certain = stream.decoder.write(Buffer.from(stream.redacting.push(Buffer.from(text))));
      if (certain !== "") send({ kind, text: certain });
    },
    // keep the others: an event of another type may come in the middle of a message
    messageComplete: ({ type }) => void open.delete(type),
  };
}
