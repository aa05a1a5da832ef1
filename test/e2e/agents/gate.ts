import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What happens to a request: it passes, is answered by the gate itself, or its connection breaks. */
export type Passage = "pass" | "break" | { status: number } | { breakAfterBytes: number };

/** An unreliable proxy between a real runner and a real coordinator. */
export interface Gate {
  url: string;
  /** The coordinator's address. */
  target: string;
  /** Called for each request. */
  decide: (path: string, method: string) => Passage;
  /** Method and path (without query) and time of every request. */
  readonly requests: { what: string; at: number }[];
  /** Breaks the connections in use. */
  disconnectAll(): void;
  stop(): Promise<void>;
}

export async function openGate(): Promise<Gate> {
  const server = createServer((incoming, answer) => {
    const path = incoming.url ?? "/";
    gate.requests.push({ what: `${incoming.method} ${path.replace(/\?.*/s, "")}`, at: performance.now() });
    const passage = gate.decide(path, incoming.method ?? "");
    if (passage === "break") incoming.destroy();
    else if (passage === "pass") forward(gate.target, incoming, answer, Number.POSITIVE_INFINITY);
    else if ("breakAfterBytes" in passage) forward(gate.target, incoming, answer, passage.breakAfterBytes);
    else refuse(passage.status, incoming, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server's address has a port.
  const { port } = server.address() as AddressInfo;
  const gate: Gate = {
    url: `http://127.0.0.1:${port}`,
    target: "",
    decide: () => "pass",
    requests: [],
    disconnectAll: () => server.closeAllConnections(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return gate;
}

function forward(target: string, incoming: IncomingMessage, answer: ServerResponse, bytes: number): void {
  const upstreamRequest = request(new URL(incoming.url ?? "/", target), {
    method: incoming.method,
    headers: incoming.headers,
    agent: false,
  });
  const giveUp = (): void => {
    upstreamRequest.destroy();
    incoming.destroy();
  };
  upstreamRequest.on("response", (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.on("error", giveUp);
    response.pipe(answer);
  });
  upstreamRequest.on("error", giveUp);
  incoming.on("error", giveUp);
  answer.on("close", () => upstreamRequest.destroy());
  let bytesLeft = bytes;
  incoming.on("data", (chunk: Buffer) => {
    if (!upstreamRequest.write(chunk)) {
      incoming.pause();
      upstreamRequest.once("drain", () => incoming.resume());
    }
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) giveUp();
  });
  incoming.on("end", () => upstreamRequest.end());
}

function refuse(status: number, incoming: IncomingMessage, answer: ServerResponse): void {
  incoming.resume();
  incoming.on("end", () => {
    answer.writeHead(status, { "content-type": "application/problem+json" });
    // With one of our codes, or the runner would take it for a proxy's response.
    answer.end(JSON.stringify({ title: "refused", status, code: "DROVER-API-003", detail: "Refused by the test." }));
  });
}
