import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { announce } from "./children.ts";
import { percentile } from "./figures.ts";
import { createJobReporter } from "./job-times.ts";

const maxEventLength = 400;

/** The naive server: one write per event and response. Messages are as long as Drover's. */
export async function oneWritePerEventRole(): Promise<void> {
  const open = new Set<ServerResponse>();
  let seq = 0;
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      response.flushHeaders();
      open.add(response);
      response.once("close", () => open.delete(response));
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => {
      for (const message of JSON.parse(Buffer.concat(chunks).toString("utf8")) as string[]) {
        seq++;
        const event = {
          run_id: "0".repeat(36),
          seq,
          attempt: 1,
          n: seq,
          at: new Date().toISOString(),
          cursor: seq,
          event: { type: "progress", percent: 50, message },
        };
        const text = `id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`;
        for (const item of open) item.write(text);
      }
      response.end();
    });
  });
  // The sender may be idle for long between its turns.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is never a string.
  announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

interface ReaderOptions {
  url: string;
  path: string;
  tokens: string[];
  readers: number;
  jobTimesPath: string;
  name: string;
}

/** All readers look for marks. Every tenth also measures the delay of events that carry their send time. */
export async function sseReadersRole(options: ReaderOptions): Promise<void> {
  const report = createJobReporter(options.jobTimesPath);
  const { hostname, port, host } = new URL(options.url);
  const marks = new Map<string, number>();
  let delays: number[] = [];
  const arrive = (mark: string): void => {
    const count = (marks.get(mark) ?? 0) + 1;
    marks.set(mark, count);
    if (count < options.readers) return;
    report("S", mark);
    report("F", mark, BigInt(Math.round(percentile(delays, 0.99) || 0)));
    delays = [];
  };
  const reader = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          `GET ${options.path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${options.tokens[index % options.tokens.length]}\r\naccept: text/event-stream\r\n\r\n`,
        );
      });
      let tail: Buffer = Buffer.alloc(0);
      let lastMark = "";
      let lastAt = 0n;
      socket.once("error", reject);
      socket.once("data", () => resolve());
      socket.on("data", (chunk: Buffer) => {
        const now = process.hrtime.bigint();
        // A read may split an event, so search the end of the previous chunk again.
        const joined = Buffer.concat([tail, chunk]);
        tail = joined.subarray(-maxEventLength);
        if (joined.includes('"mark ')) {
          for (const [, mark = ""] of joined.toString("latin1").matchAll(/"mark (\S+) "/g)) {
            if (mark === lastMark) continue;
            lastMark = mark;
            arrive(mark);
          }
        }
        if (index % 10 > 0 || !joined.includes('"at ')) return;
        for (const [, text = "0"] of joined.toString("latin1").matchAll(/"at (\d+) "/g)) {
          const sentAt = BigInt(text);
          if (sentAt <= lastAt) continue;
          lastAt = sentAt;
          delays.push(Number(now - sentAt));
        }
      });
    });
  await Promise.all(Array.from({ length: options.readers }, (_, index) => reader(index)));
  announce("ready");
}
