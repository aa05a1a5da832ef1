import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { createClient } from "./client.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const clean of cleanups.splice(0).toReversed()) clean();
});

test("waits a minute for a response over a Unix socket", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-send-"));
  const path = join(directory, "s");
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => void responses.push(response)).listen(path);
  cleanups.push(
    () => rmSync(directory, { recursive: true }),
    () => server.close(),
    () => server.closeAllConnections(),
  );
  await new Promise((resolve) => server.once("listening", resolve));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });

  const client = createClient({ url: `unix:${path}`, token: "drv_x" });
  const slowResponse = client.health();
  await expect.poll(() => responses.length).toBe(1);
  vi.advanceTimersByTime(59_000);
  responses[0]!.end(JSON.stringify({ status: "ok" }));
  expect(await slowResponse).toEqual({ status: "ok" });

  const missingResponse = client.health().catch((error: unknown) => error);
  await expect.poll(() => responses.length).toBe(2);
  vi.advanceTimersByTime(60_000);
  expect(await missingResponse).toMatchObject({
    code: "DROVER-API-023",
    message: expect.stringContaining("within 60 s"),
  });
});
