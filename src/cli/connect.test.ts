import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { HostError } from "../model/errors.ts";
import { refusalOf } from "../serve/refusal.ts";
import { beaconFile, connect } from "./connect.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const away = JSON.stringify(refusalOf(new HostError({ code: "DROVER-STA-008", message: "away" })).problem);

it.each([
  ["a coordinator whose record is away is there", away, true],
  ["a server that is not a coordinator is not", "Service Unavailable", false],
])("%s", async (_what, text, isThere) => {
  const server = createServer((_, response) => void response.writeHead(503).end(text));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  closing.push(() => void server.close());
  const cwd = mkdtempSync(join(tmpdir(), "drover-connect-"));
  closing.push(() => rmSync(cwd, { recursive: true, force: true }));
  // a TCP server's address is never a string
  const { port } = server.address() as { port: number };
  writeFileSync(
    beaconFile(cwd),
    JSON.stringify({ url: `http://127.0.0.1:${port}`, pid: process.pid, token_file: "token" }),
  );
  const env = { DROVER_STATE_DIR: cwd };
  const { client } = await connect({ options: {}, positionals: [], rest: null, others: [], env, cwd });
  expect(client !== null).toBe(isThere);
});
