import { createServer, request, type Server } from "node:http";
import { afterEach } from "vitest";
import type { Serving } from "./serving.ts";

/**
 * What becomes of a request: `pass`; `cut` before it is delivered; `lost`, delivered and its answer cut off; or its
 * answer cut off, or held for ever, after some bytes.
 */
type Fate = "pass" | "cut" | "lost" | { bytes: number; end: "cut" | "hold" };

const gates: Server[] = [];
afterEach(() => {
  for (const server of gates.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** Stands between a command and its coordinator, and loses what the test says. Gives its address. */
export async function gate(
  { url, gatePort }: Pick<Serving, "url" | "gatePort">,
  fateOf: (method: string, path: string) => Fate,
): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/" } = incoming;
    const fate = fateOf(method, path);
    const cut = (): void => void incoming.socket.destroy();
    if (fate === "cut") return cut();
    const { host: _host, ...headers } = incoming.headers;
    const passed = request(`${url}${path}`, { method, headers }, (answer) => {
      if (fate === "lost") return void answer.resume().once("end", cut);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      if (fate === "pass") return void answer.on("error", cut).pipe(outgoing);
      let left = fate.bytes;
      answer.on("error", cut).on("data", (chunk: Buffer) => {
        if (left <= 0) return;
        outgoing.write(chunk.subarray(0, left));
        left -= chunk.length;
        // what was written is on its way before the connection goes
        if (left <= 0 && fate.end === "cut") setTimeout(cut, 50);
      });
    });
    passed.on("error", cut);
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  gates.push(server);
  await new Promise<void>((resolve) => server.listen(gatePort, "127.0.0.1", resolve));
  return `http://127.0.0.1:${gatePort}`;
}
