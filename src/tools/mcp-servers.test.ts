import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { openContext } from "../../test/fixtures/execute/open-context.ts";
import { openMcpServers } from "./mcp-servers.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function open(servers: Record<string, unknown>, startTimeoutMs = 60_000) {
  const opened = await openContext();
  cleanups.push(opened.close);
  const { start, signal, dirs } = opened.context;
  const serverOptions = {
    start,
    signal,
    workingDirectory: dirs.work,
    version: "0",
    startTimeoutMs,
    callTimeoutMs: 60_000,
  };
  const openedServers = await openMcpServers(servers, serverOptions);
  return { ...openedServers, alive: opened.alive };
}

const program = (code: string) => ({ command: process.execPath, args: ["-e", code] });

it.each([
  ["hangs", "setInterval(() => {}, 1000)", /timed out/i, 200],
  ["sends endless garbage", "setInterval(() => console.log('{nonsense'), 10)", /timed out/i, 200],
  [
    "writes to stderr and exits",
    "console.error('no licence found'); process.exit(3)",
    /closed.*stderr: no licence found/i,
    60_000,
  ],
] as const)("reports a server that %s and leaves no process of it", async (_, code, message, startTimeoutMs) => {
  const { failures, tools, alive } = await open({ bad: program(code) }, startTimeoutMs);
  expect(tools).toEqual([]);
  expect(failures).toEqual([{ server: "bad", message: expect.stringMatching(message) }]);
  expect(await alive()).toBe(0);
});

it("sends the headers to a server over HTTP, and reports one that refuses them or is unreachable", async () => {
  const sentHeaders: unknown[] = [];
  const refusingServer = createServer((request, response) => {
    sentHeaders.push(request.headers["x-team"]);
    response.writeHead(401).end("no");
  });
  refusingServer.listen(0, "127.0.0.1");
  cleanups.push(() => refusingServer.close());
  await once(refusingServer, "listening");
  const { port } = refusingServer.address() as AddressInfo;
  const { failures } = await open({
    refusing: { url: `http://127.0.0.1:${port}/mcp`, headers: { "x-team": "a b" } },
    absent: { url: "http://127.0.0.1:1/mcp" },
  });
  expect(failures.map(({ server }) => server)).toEqual(["refusing", "absent"]);
  expect(sentHeaders).toContain("a b");
});

it("answers a call to a server that has exited", async () => {
  const server = new URL("../../test/fixtures/mcp/server.mjs", import.meta.url).pathname;
  const { tools, close, alive } = await open({ notes: { command: process.execPath, args: [server] } });
  await close();
  expect(await alive()).toBe(0);
  const context = { signal: new AbortController().signal, start: () => Promise.reject(new Error("unused")) };
  expect(await tools[0]?.run({ word: "a" }, context)).toMatchObject({ ok: false, error: { code: "failed" } });
});
