import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { registration } from "../../test/coordinator.ts";
import { findLocal } from "../local.ts";
import { createHttpPort } from "../wire/http-port.ts";
import { readListen, serveHere } from "./serve-here.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** What a runner hears of a coordinator that was started in this directory. */
async function registeredIn(cwd: string) {
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const input = { options: {}, positionals: [], rest: null, others: [], env, cwd };
  const coordinator = await serveHere(input, await findLocal(env, cwd), { host: "127.0.0.1", port: 0 });
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken, pollHoldMs: 1000 });
  try {
    return { ...(await port.register(registration("runner"))), id: await coordinator.store.storeId() };
  } finally {
    port.close();
    await coordinator.stop();
  }
}

it("tells runners whose record it keeps, and how large a file drover.yaml lets it take", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "drover-serve-"));
  closing.push(() => rmSync(cwd, { recursive: true, force: true }));
  const first = await registeredIn(cwd);
  expect(first).toMatchObject({ store_id: first.id, max_file_bytes: 50 * 1024 * 1024 });
  writeFileSync(join(cwd, "drover.yaml"), "files:\n  max_file_mb: 200\n");
  expect(await registeredIn(cwd)).toMatchObject({ store_id: first.id, max_file_bytes: 200 * 1024 * 1024 });
});

it.each(["up", "coordinator"] as const)("leads who gave %s a wrong port to that command's help", (command) => {
  const input = { options: { port: "http" }, positionals: [], rest: null, others: [], env: {}, cwd: "/" };
  const fault = { code: "DROVER-USE-001", field: "--port", next: `See \`drover ${command} --help\`.` };
  expect(() => readListen(input, command)).toThrow(expect.objectContaining(fault));
});
