import type { SystemDeps } from "../deps.ts";
import { parseJson, tooLarge } from "../read-body.ts";
import { Refusal } from "../refusal.ts";
import { Reply } from "../reply.ts";
import { routeWith } from "../route.ts";

const route = routeWith<SystemDeps>();

const mostBytes = 1024 * 1024;

export const receiveRoutes = [
  route("POST /hooks/{name}", {
    rule: { signed: true },
    async handle({ deps, params: { name = "" }, headers, bytes, signal }) {
      const { receiver } = deps.triggers;
      const leave = receiver.enter();
      if (leave === null) throw tooMany(1, "Too many deliveries are being read at once.");
      try {
        const body = bytes === undefined ? Buffer.alloc(0) : await collect(bytes);
        signal.throwIfAborted();
        const parse = (given: Uint8Array): unknown => parseJson(given).value;
        const received = await receiver.receive({ name, headers, body, parse });
        if (received.ok) {
          const { run_id, skipped } = received;
          return new Reply(202, { run_id, ...(skipped === undefined ? {} : { skipped }) });
        }
        const { status, code, message, faults, next } = received.fault;
        if (received.retry_after_seconds !== undefined) throw tooMany(received.retry_after_seconds, message);
        throw new Refusal(status, code, message, { faults, ...(next ? { next } : {}) });
      } finally {
        leave();
      }
    },
  }),
];

async function collect({ size, bytes }: { size: number | null; bytes: AsyncIterable<Uint8Array> }): Promise<Buffer> {
  if (size !== null && size > mostBytes) throw tooLarge(mostBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    length += chunk.length;
    if (length > mostBytes) throw tooLarge(mostBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooMany(seconds: number, detail: string): Refusal {
  return new Refusal(429, "DROVER-HOK-005", detail, { headers: { "retry-after": String(seconds) } });
}
