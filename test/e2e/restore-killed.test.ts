import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { databaseFile, recordDirectory } from "../../src/model/state-layout.ts";
import { drover, createDirectory } from "./drover.ts";

test("a restore killed at any moment can be repeated", async () => {
  const cwd = createDirectory();
  const runAt = (state: string, args: string[], onSpawn?: (pid: number) => void) =>
    drover(args, { cwd, env: { DROVER_STATE_DIR: join(cwd, state) }, ...(onSpawn ? { onSpawn } : {}) });
  expect((await runAt("state", ["exec", "echo hello"])).code).toBe(0);
  expect((await runAt("state", ["backup", "copy"])).code).toBe(0);
  const { stdout: whole } = await runAt("state", ["audit", "verify"]);
  let killed = 0;
  // Each of these files marks a stage of the restore.
  for (const name of ["drover.db.part", "drover.db.part", "audit.key", "audit.head"]) {
    const state = `${name}-${killed}`;
    let [pid, ended] = [0, false];
    const restoring = runAt(state, ["restore", "copy"], (spawned) => (pid = spawned));
    void restoring.then(() => (ended = true));
    while (!ended && !existsSync(join(recordDirectory(join(cwd, state)), name))) await turn();
    if (!ended) process.kill(pid, "SIGKILL");
    const first = await restoring;
    killed += first.signal === "SIGKILL" ? 1 : 0;
    const repeatedRestore = await runAt(state, ["restore", "copy"]);
    // If the kill came too late, the record exists and verifies.
    if (!repeatedRestore.stderr.includes("already contains a record"))
      expect(repeatedRestore, repeatedRestore.stderr).toMatchObject({ code: 0 });
    else expect(existsSync(`${databaseFile(recordDirectory(join(cwd, state)))}.part`)).toBe(false);
    expect(await runAt(state, ["audit", "verify"])).toMatchObject({ code: 0, stdout: whole });
  }
  expect(killed).toBeGreaterThan(0);
});
