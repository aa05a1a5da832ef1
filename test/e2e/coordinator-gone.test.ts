// Commands that are interrupted, or whose coordinator disappears, before they are done.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { recordDirectory, runnerTokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { drover, createDirectory, type CommandResult, type RunOptions } from "./drover.ts";
import { startFaultyProxy } from "./faulty-proxy.ts";
import { startCommand, startRunner, startCoordinator, type CoordinatorProcess } from "./coordinator-process.ts";

let cwd: string;
let coordinator: CoordinatorProcess;
beforeEach(async () => {
  cwd = createDirectory();
  coordinator = await startCoordinator(cwd);
});

const runThrough = (url: string, words: string[], options: RunOptions = {}): Promise<CommandResult> =>
  drover(words, {
    ...options,
    cwd,
    env: { DROVER_STATE_DIR: join(cwd, "none"), DROVER_API_URL: url, DROVER_API_KEY: coordinator.token },
  });
const runs = async (): Promise<Run[]> => (await coordinator.call<{ items: Run[] }>("GET", "/runs")).json.items;

test("a run whose responses get lost is submitted once and reports its real result", async () => {
  await startRunner(coordinator, cwd, "one", ["--examples", "-x", "echo"]);
  let [submits, polls] = [0, 0];
  const url = await startFaultyProxy(coordinator, (method, path) => {
    if (method === "POST" && path === "/runs") return (submits += 1) === 1 ? "lost" : "pass";
    if (method === "GET" && /^\/runs\/[0-9a-f-]+$/.test(path)) return (polls += 1) < 3 ? "cut" : "pass";
    return "pass";
  });
  const result = await runThrough(url, ["run", "echo", "--message", "hello"]);
  expect(result, result.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("hello") });
  expect([submits, polls]).toEqual([2, 3]);
  expect(await runs()).toHaveLength(1);
});

test("a repeated request for a finished run prints its output", async () => {
  await startRunner(coordinator, cwd, "one", ["--examples", "-x", "echo"]);
  const args = ["run", "echo", "--message", "hello", "--idempotency-key", "k"];
  const first = await runThrough(coordinator.url, args);
  expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining("hello") });
  expect(await runThrough(coordinator.url, args)).toEqual(first);
  expect(await runs()).toHaveLength(1);
});

test("a failed hint does not change the exit code of a run", async () => {
  await startRunner(coordinator, cwd, "one", ["--examples", "-x", "word-count"]);
  const url = await startFaultyProxy(coordinator, (_, path) => (path.endsWith("/files") ? "cut" : "pass"));
  const result = await runThrough(url, ["run", "word-count", "--prompt", "Ship it"]);
  expect(result, result.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining("could not list the files") });
});

test("reports a missing coordinator immediately", async () => {
  const result = await runThrough("http://127.0.0.1:9", ["run", "echo", "--message", "hello"]);
  expect(result).toMatchObject({ code: 125, stderr: expect.stringContaining("DROVER-API-023") });
});

test("reports an interrupted backup and removes the partial file", async () => {
  const url = await startFaultyProxy(coordinator, (_, path) =>
    path === "/backup" ? { bytes: 5000, end: "cut" } : "pass",
  );
  const result = await runThrough(url, ["backup", "copy"]);
  expect(result).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-API-023]") });
  expect(readdirSync(cwd)).toEqual(["state"]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("a backup interrupted by %s leaves no file", async (signal) => {
  const url = await startFaultyProxy(coordinator, (_, path) =>
    path === "/backup" ? { bytes: 5000, end: "hold" } : "pass",
  );
  let pid = 0;
  const ending = runThrough(url, ["backup", "copy"], { onSpawn: (spawned) => (pid = spawned) });
  await expect.poll(() => readdirSync(cwd).some((name) => name.startsWith("copy."))).toBe(true);
  process.kill(pid, signal);
  const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
  expect(await ending).toMatchObject({ code: codes[signal] });
  expect(readdirSync(cwd)).toEqual(["state"]);
});

test("backup and drain report their result as JSON", async () => {
  const backup = await runThrough(coordinator.url, ["backup", "copy", "--json"]);
  expect(JSON.parse(backup.stdout)).toEqual({ file: join(cwd, "copy") });
  expect(existsSync(join(cwd, "copy"))).toBe(true);
  await startRunner(coordinator, cwd, "one", ["--examples", "-x", "echo"]);
  const [runner] = (await coordinator.call<{ items: { runner_id: string }[] }>("GET", "/runners")).json.items;
  const runner_id = runner?.runner_id ?? "";
  const drained = await runThrough(coordinator.url, ["runners", "drain", runner_id.slice(0, 6), "--json"]);
  expect(drained, drained.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(drained.stdout)).toEqual({ runner_id, draining: true });
  const back = await runThrough(coordinator.url, ["runners", "drain", runner_id, "--undo", "--json"]);
  expect(JSON.parse(back.stdout)).toEqual({ runner_id, draining: false });
  expect(await runThrough(coordinator.url, ["runners", "drain", "0000000000000000"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("drover runners list"),
  });
});

test("does not use up an enrolment if the token cannot be stored", async () => {
  const { stdout } = await drover(["tokens", "enrol", "host"], { cwd, env: { DROVER_STATE_DIR: coordinator.state } });
  const env = { DROVER_API_URL: coordinator.url, DROVER_ENROLMENT: stdout.trim() };
  writeFileSync(join(cwd, "file"), "in the way");
  const args = ["runner", "--examples", "-x", "echo"];
  const withUnwritableState = await drover(args, { cwd, env: { ...env, DROVER_STATE_DIR: join(cwd, "file/state") } });
  expect(withUnwritableState).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-STA-00") });
  const state = join(cwd, "runner");
  await startCommand(args, { cwd, env: { ...env, DROVER_STATE_DIR: state }, ready: /^Offers /m });
  expect(readFileSync(runnerTokenFile(recordDirectory(state)), "utf8")).toMatch(/^drv_[0-9A-Za-z]{32}\n$/);
  expect(readdirSync(recordDirectory(state)).filter((name) => name.startsWith("runner-token"))).toEqual([
    "runner-token",
  ]);
});

test("revokes the token of the command last, and reports each revoked token", async () => {
  const createToken = async (subject: string): Promise<{ token: string; token_id: string }> =>
    (await coordinator.call<{ token: string; token_id: string }>("POST", "/tokens", { role: "user", subject })).json;
  const [ownToken, other] = [await createToken("ada"), await createToken("ada")];
  const revoke = (token: string, ...words: string[]): Promise<CommandResult> =>
    drover(["tokens", "revoke", ...words], {
      cwd,
      env: { DROVER_STATE_DIR: join(cwd, "none"), DROVER_API_URL: coordinator.url, DROVER_API_KEY: token },
    });
  const status = async (token: string): Promise<number> =>
    (await coordinator.call("GET", "/runs", undefined, token)).status;
  const result = await revoke(ownToken.token, "self", other.token_id);
  expect(result, result.stderr).toMatchObject({ code: 0, stdout: `${other.token_id}\nself\n` });
  expect([await status(ownToken.token), await status(other.token)]).toEqual([401, 401]);

  const [bobsFirst, bobsSecond] = [await createToken("bob"), await createToken("bob")];
  const revokedAll = await revoke(bobsFirst.token, "self", "--subject", "bob");
  expect(revokedAll, revokedAll.stderr).toMatchObject({ code: 0 });
  expect([await status(bobsFirst.token), await status(bobsSecond.token)]).toEqual([401, 401]);

  const [first, second] = [await createToken("eve"), await createToken("eve")];
  const partial = await revoke(first.token, first.token_id, second.token_id);
  expect(partial).toMatchObject({ code: 125, stdout: `${first.token_id}\n` });
  expect(partial.stderr).toContain(`Not revoked: ${second.token_id}`);
});
