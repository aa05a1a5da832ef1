import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { disconnectStalled } from "./disconnect-stalled.ts";
import { createRequestLimiter } from "./request-limiter.ts";

/** More than the kernel buffers for a connection. */
const largeBody = Buffer.alloc(24 * 1024 * 1024);

test("counts unread responses by their bytes until they are disconnected", async () => {
  const admitRequest = createRequestLimiter({ requests: 1000, unreadBytes: 1024 * 1024, totalRequests: 1000 });
  const longResponses: ServerResponse[] = [];
  const server = createServer((request, outgoing) => {
    try {
      admitRequest("stalled", outgoing);
      if (request.url === "/long") longResponses.push(outgoing.on("error", () => undefined));
      outgoing.end(request.url === "/long" ? largeBody : "short");
    } catch {
      outgoing.writeHead(429).end();
    }
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  const fetchShortStatus = async () => (await fetch(`http://127.0.0.1:${port}/short`)).status;
  try {
    for (let index = 0; index < 8; index += 1) {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      sockets.push(socket.pause());
      socket.write("GET /long HTTP/1.1\r\nhost: x\r\n\r\n");
    }
    await expect.poll(() => longResponses.length).toBe(8);
    expect(await fetchShortStatus()).toBe(429);
    for (const outgoing of longResponses) disconnectStalled(outgoing, 100);
    await expect.poll(fetchShortStatus).toBe(200);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  }
});
