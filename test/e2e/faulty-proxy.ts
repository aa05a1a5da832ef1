import { createServer, request, type Server } from "node:http";
import { afterEach } from "vitest";
import type { CoordinatorProcess } from "./coordinator-process.ts";

/**
 * `cut`: the connection breaks before the request is delivered. `lost`: the request is delivered and its response is
 * not. Otherwise the response is interrupted, or stalls forever, after some bytes.
 */
type Delivery = "pass" | "cut" | "lost" | { bytes: number; end: "cut" | "hold" };

const proxies: Server[] = [];
afterEach(() => {
  for (const server of proxies.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** Starts a proxy between a command and its coordinator with the faults that the test chooses. Returns its address. */
export async function startFaultyProxy(
  { url, proxyPort }: Pick<CoordinatorProcess, "url" | "proxyPort">,
  chooseDelivery: (method: string, path: string) => Delivery,
): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const delivery = chooseDelivery(method, path);
    const disconnect = (): void => void incoming.socket.destroy();
    if (delivery === "cut") return disconnect();
    const { host: _host, ...headers } = incoming.headers;
    const upstreamRequest = request(`${url}${path}`, { method, headers }, (answer) => {
      if (delivery === "lost") return void answer.resume().once("end", disconnect);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      if (delivery === "pass") return void answer.on("error", disconnect).pipe(outgoing);
      let remaining = delivery.bytes;
      answer.on("error", disconnect).on("data", (chunk: Buffer) => {
        if (remaining <= 0) return;
        outgoing.write(chunk.subarray(0, remaining));
        remaining -= chunk.length;
        // The client should receive the written bytes before the connection breaks.
        if (remaining <= 0 && delivery.end === "cut") setTimeout(disconnect, 50);
      });
    });
    upstreamRequest.on("error", disconnect);
    outgoing.on("close", () => upstreamRequest.destroy());
    incoming.pipe(upstreamRequest);
  });
  proxies.push(server);
  await new Promise<void>((resolve) => server.listen(proxyPort, "127.0.0.1", resolve));
  return `http://127.0.0.1:${proxyPort}`;
}
