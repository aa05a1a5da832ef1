/** One message of a text/event-stream. */
export interface SseMessage {
  id: string | null;
  event: string;
  data: string;
}

/** Splits a byte stream into messages. An incomplete message at the end is dropped. */
export async function* readSse(body: AsyncIterable<Uint8Array>): AsyncGenerator<SseMessage> {
  const decoder = new TextDecoder();
  let pending: string[] = [];
  let rest = "";
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line !== "" && line !== "\r") {
        pending.push(line);
        continue;
      }
      const message = toMessage(pending);
      pending = [];
      if (message) yield message;
    }
  }
}

function toMessage(lines: readonly string[]): SseMessage | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of lines) {
    // A line that starts with a colon is a comment. The coordinator sends comments as heartbeats.
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1)).replace(/\r$/, "");
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: data.join("\n") };
}
