import { StringDecoder } from "node:string_decoder";
import type { RunEvent } from "../../model/event.ts";
import type { Delta } from "../../model/executor.ts";
import type { Redactor, RedactStream } from "../../model/process.ts";

/** What an agent is saying, on its way to those who watch: redacted across the pieces it comes in. */
export interface PartialText {
  push(delta: Delta): void;
  /** What was held back in case a secret began there is in the event, and said no more. */
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
    // an event of another kind may come in the middle of a message, and of a secret
    messageComplete: ({ type }) => void open.delete(type),
  };
}
