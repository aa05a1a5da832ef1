import { Agent, createServer, type IncomingMessage, request } from "node:http";

export interface ReplayingProxy {
  url: string;
  /** The number of requests received from runners, and of copies sent on. */
  readonly came: number;
  readonly sent: number;
  close(): Promise<void>;
}

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

/**
 * A proxy between a runner and its coordinator that sends every request several times, each copy after a random delay,
 * so that requests overtake each other. Returns the first response.
 */
export async function startReplayingProxy(
  target: string,
  options: { port: number; copies: number; delayMs: number; onRequest?: (path: string, body: Buffer) => void },
): Promise<ReplayingProxy> {
  const agent = new Agent({ keepAlive: true });
  const inFlight = new Set<Promise<unknown>>();
  let came = 0;
  let sent = 0;
  const server = createServer((incoming, outgoing) => {
    const clientGone = new AbortController();
    outgoing.once("close", () => clientGone.abort());
    const answer = async (): Promise<void> => {
      const body = await readAll(incoming);
      came += 1;
      options.onRequest?.(incoming.url ?? "", body);
      const copies = Array.from({ length: options.copies }, async (_, copy) => {
        // Send the first at once so that the runner is not slowed down, the others later.
        await new Promise((resolve) => setTimeout(resolve, copy === 0 ? 0 : Math.random() * options.delayMs));
        sent += 1;
        // Abort the first copy if the runner disconnects. The others arrive in any case.
        return forward(target, agent, incoming, body, copy === 0 ? clientGone.signal : undefined);
      });
      const first = await Promise.any(copies);
      outgoing
        .writeHead(first.status, {
          "content-type": first.headers["content-type"] ?? "application/json",
          "content-length": first.body.length,
        })
        .end(first.body);
      await Promise.allSettled(copies);
    };
    const answering = answer().catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : undefined));
    inFlight.add(answering);
    void answering.finally(() => inFlight.delete(answering));
  });
  await new Promise<void>((resolve) => void server.listen(options.port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${options.port}`,
    get came() {
      return came;
    },
    get sent() {
      return sent;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(inFlight);
      agent.destroy();
    },
  };
}

function forward(
  target: string,
  agent: Agent,
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host: _host, connection: _connection, "content-length": _length, ...kept } = headers;
    const copy = request(
      new URL(url ?? "/", target),
      { method, agent, headers: { ...kept, "content-length": body.length }, ...(signal ? { signal } : {}) },
      (response) => {
        readAll(response).then(
          (read) => resolve({ status: response.statusCode ?? 502, headers: response.headers, body: read }),
          reject,
        );
      },
    );
    copy.on("error", reject);
    copy.end(body);
  });
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer); // No encoding is set, so chunks are buffers.
  return Buffer.concat(chunks);
}
