import type { SystemDeps } from "../deps.ts";
import { parseJson } from "../bodies/parse-body.ts";
import { tooLarge } from "../bodies/read-body.ts";
import { Refusal, refusalFromFault } from "../refusal.ts";
import { Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";

const route = createRouteBuilder<SystemDeps>();

const maxBytes = 1024 * 1024;

export const receiveRoutes = [
  route("POST /hooks/{name}", {
    rule: { signed: true },
    async handle({ deps, params: { name = "" }, headers, bytes, signal }) {
      const { receiver } = deps.triggers;
      const bodyAborter = new AbortController();
      const endBody = receiver.startBody(() =>
        bodyAborter.abort(tooMany(1, "Too many deliveries are being received at once.")),
      );
      try {
        const body = bytes === undefined ? Buffer.alloc(0) : await collect(bytes, bodyAborter.signal);
        // The body is in memory. Only the number of bodies being read is limited.
        endBody();
        signal.throwIfAborted();
        const parse = (content: Uint8Array): unknown => parseJson(content).value;
        const received = await receiver.receive({ name, headers, body, parse });
        if (received.ok) {
          const { run_id, skipped } = received;
          return new Reply(202, { run_id, ...(skipped === undefined ? {} : { skipped }) });
        }
        if (received.retry_after_seconds !== undefined)
          throw tooMany(received.retry_after_seconds, received.fault.message);
        throw refusalFromFault(received.fault);
      } finally {
        endBody();
      }
    },
  }),
];

async function collect(
  { size, bytes }: { size: number | null; bytes: AsyncIterable<Uint8Array> },
  signal: AbortSignal,
): Promise<Buffer> {
  if (size !== null && size > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const cancelled = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  // The promise may reject when nothing waits for it any more.
  cancelled.catch(() => undefined);
  const chunkIterator = bytes[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await Promise.race([chunkIterator.next(), cancelled]);
    if (done) return Buffer.concat(chunks);
    length += value.length;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(value);
  }
}

function tooMany(seconds: number, detail: string): Refusal {
  return new Refusal(429, "DROVER-HOK-005", detail, { headers: { "retry-after": String(seconds) } });
}
