import { DatabaseSync } from "@photostructure/sqlite";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bundle } from "./bundle.ts";
import { bin, drover, exists, folder } from "./drover.ts";

it("a database that stays locked: 125 after five seconds, and nothing was run", async () => {
  const cwd = folder();
  const state = join(cwd, "state");
  const run = (...args: string[]) => drover(args, { cwd, env: { DROVER_STATE_DIR: state } });
  await run("exec", "true");
  const holder = spawn(process.execPath, [await bundle("e2e/hold-lock.ts"), join(state, "drover.db")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await new Promise((resolve) => void holder.stdout.once("data", resolve));
  try {
    const { code, stderr } = await run("exec", "touch made");
    expect(code).toBe(125);
    expect(stderr).toContain("DROVER-STA-003");
    expect(exists(join(cwd, "made"))).toBe(false);
  } finally {
    holder.kill("SIGKILL");
  }
  // once it is free again, everything goes on
  expect((await run("exec", "touch made")).code).toBe(0);
  expect((await run("audit", "verify")).code).toBe(0);
});

it("a disk that fills up before the start is recorded: 125, and nothing was run", async () => {
  const cwd = folder();
  const state = join(cwd, "state");
  const small = [
    "unshare",
    "-Urm",
    "sh",
    "-c",
    `mkdir -p '${state}' && mount -t tmpfs -o size=64k none '${state}' && exec "$@"`,
    "sh",
  ];
  const { code, stderr } = await drover(["exec", "touch made"], {
    cwd,
    through: small,
    env: { DROVER_STATE_DIR: state },
  });
  expect(code).toBe(125);
  expect(stderr).toContain("DROVER-STA-002");
  expect(exists(join(cwd, "made"))).toBe(false);
});

it("a disk that fills up while the command runs: never a false success", async () => {
  const cwd = folder();
  const state = join(cwd, "state");
  // the command itself takes what is left of the disk, so that its end cannot be recorded
  const fill = `dd if=/dev/zero of='${state}/filler' bs=4k 2>/dev/null; touch '${cwd}/made'; true`;
  const small = [
    "unshare",
    "-Urm",
    "sh",
    "-c",
    `mkdir -p '${state}' && mount -t tmpfs -o size=2m none '${state}' && exec "$@"`,
    "sh",
  ];
  const { code, stderr } = await drover(["exec", fill], { cwd, through: small, env: { DROVER_STATE_DIR: state } });
  expect(exists(join(cwd, "made"))).toBe(true);
  expect(code).toBe(125);
  expect(stderr).toContain("DROVER-STA-002");
});

it("what an earlier Drover left in a mess is not the end of the next command", async () => {
  const cwd = folder();
  const state = join(cwd, "state");
  const run = (...args: string[]) => drover(args, { cwd, env: { DROVER_STATE_DIR: state } });
  let pid = 0;
  const killed = drover(["exec", "sleep 60"], {
    cwd,
    env: { DROVER_STATE_DIR: state },
    onSpawn: (spawned) => (pid = spawned),
  });
  await expect
    .poll(async () => (await run("runs", "list", "--quiet")).stdout, { timeout: 20_000 })
    .toContain("sleep 60");
  process.kill(pid, "SIGKILL");
  await killed;
  const database = new DatabaseSync(join(state, "drover.db"));
  database.exec("update audit_rows set body = 'not JSON' where kind = 'start'");
  database.close();
  const next = await run("exec", "echo fine");
  expect(next).toMatchObject({ code: 0, stdout: "fine\n" });
  expect(next.stderr).toContain("looking for interrupted runs failed");
  expect((await run("audit", "verify")).code).toBe(1);
});

it("a full disk behind stdout ends the command, says so, and is on the record", async () => {
  const cwd = folder();
  const line = `exec '${process.execPath}' '${bin}' exec 'echo hi; sleep 60' >/dev/full`;
  const { code, stderr } = await drover([], {
    cwd,
    through: ["sh", "-c", line],
    env: { DROVER_STATE_DIR: join(cwd, "state") },
  });
  expect(code).toBe(130);
  expect(stderr).toContain("the output cannot be written");
  const [run] = (
    await drover(["runs", "list", "--json"], { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } })
  ).stdout
    .trim()
    .split("\n");
  expect(JSON.parse(run!)).toMatchObject({ status: "cancelled" });
});
