// Commands whose coordinator goes away in the middle, or that are told to end there.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { recordDirectory, runnerTokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { drover, folder, type Ran, type RunOptions } from "./drover.ts";
import { gate } from "./losing-gate.ts";
import { keepRunning, offer, serve, type Serving } from "./serving.ts";

let cwd: string;
let serving: Serving;
beforeEach(async () => {
  cwd = folder();
  serving = await serve(cwd);
});

const through = (url: string, words: string[], options: RunOptions = {}): Promise<Ran> =>
  drover(words, {
    ...options,
    cwd,
    env: { DROVER_STATE_DIR: join(cwd, "none"), DROVER_API_URL: url, DROVER_API_KEY: serving.token },
  });
const runs = async (): Promise<Run[]> => (await serving.call<{ items: Run[] }>("GET", "/runs")).json.items;

test("a run whose responses get lost is submitted once and reports its real result", async () => {
  await offer(serving, cwd, "one", ["--examples", "-x", "echo"]);
  let [submits, looks] = [0, 0];
  const url = await gate(serving, (method, path) => {
    if (method === "POST" && path === "/runs") return (submits += 1) === 1 ? "lost" : "pass";
    if (method === "GET" && /^\/runs\/[0-9a-f-]+$/.test(path)) return (looks += 1) < 3 ? "cut" : "pass";
    return "pass";
  });
  const ran = await through(url, ["run", "echo", "--message", "hello"]);
  expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("hello") });
  expect([submits, looks]).toEqual([2, 3]);
  expect(await runs()).toHaveLength(1);
});

test("a repeated request for a finished run prints its output", async () => {
  await offer(serving, cwd, "one", ["--examples", "-x", "echo"]);
  const words = ["run", "echo", "--message", "hello", "--idempotency-key", "k"];
  const first = await through(serving.url, words);
  expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining("hello") });
  expect(await through(serving.url, words)).toEqual(first);
  expect(await runs()).toHaveLength(1);
});

test("a failed hint does not change the exit code of a run", async () => {
  await offer(serving, cwd, "one", ["--examples", "-x", "word-count"]);
  const url = await gate(serving, (_, path) => (path.endsWith("/files") ? "cut" : "pass"));
  const ran = await through(url, ["run", "word-count", "--prompt", "Ship it"]);
  expect(ran, ran.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining("could not list the files") });
});

test("reports a missing coordinator immediately", async () => {
  const ran = await through("http://127.0.0.1:9", ["run", "echo", "--message", "hello"]);
  expect(ran).toMatchObject({ code: 125, stderr: expect.stringContaining("DROVER-API-023") });
});

test("reports an interrupted backup and removes the partial file", async () => {
  const url = await gate(serving, (_, path) => (path === "/backup" ? { bytes: 5000, end: "cut" } : "pass"));
  const ran = await through(url, ["backup", "copy"]);
  expect(ran).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-API-023]") });
  expect(readdirSync(cwd)).toEqual(["state"]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("a backup that is ended by %s leaves nothing", async (signal) => {
  const url = await gate(serving, (_, path) => (path === "/backup" ? { bytes: 5000, end: "hold" } : "pass"));
  let pid = 0;
  const ending = through(url, ["backup", "copy"], { onSpawn: (spawned) => (pid = spawned) });
  await expect.poll(() => readdirSync(cwd).some((name) => name.startsWith("copy."))).toBe(true);
  process.kill(pid, signal);
  const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
  expect(await ending).toMatchObject({ code: codes[signal] });
  expect(readdirSync(cwd)).toEqual(["state"]);
});

test("backup and drain report their result as JSON", async () => {
  const backup = await through(serving.url, ["backup", "copy", "--json"]);
  expect(JSON.parse(backup.stdout)).toEqual({ file: join(cwd, "copy") });
  expect(existsSync(join(cwd, "copy"))).toBe(true);
  await offer(serving, cwd, "one", ["--examples", "-x", "echo"]);
  const [runner] = (await serving.call<{ items: { runner_id: string }[] }>("GET", "/runners")).json.items;
  const runner_id = runner?.runner_id ?? "";
  const drained = await through(serving.url, ["runners", "drain", runner_id.slice(0, 6), "--json"]);
  expect(drained, drained.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(drained.stdout)).toEqual({ runner_id, draining: true });
  const back = await through(serving.url, ["runners", "drain", runner_id, "--undo", "--json"]);
  expect(JSON.parse(back.stdout)).toEqual({ runner_id, draining: false });
  expect(await through(serving.url, ["runners", "drain", "0000000000000000"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("drover runners list"),
  });
});

test("does not use up an enrolment if the token cannot be stored", async () => {
  const { stdout } = await drover(["tokens", "enrol", "host"], { cwd, env: { DROVER_STATE_DIR: serving.state } });
  const env = { DROVER_API_URL: serving.url, DROVER_ENROLMENT: stdout.trim() };
  writeFileSync(join(cwd, "file"), "in the way");
  const words = ["runner", "--examples", "-x", "echo"];
  const refused = await drover(words, { cwd, env: { ...env, DROVER_STATE_DIR: join(cwd, "file/state") } });
  expect(refused).toMatchObject({ code: 125, stderr: expect.stringContaining("[DROVER-STA-00") });
  const state = join(cwd, "runner");
  await keepRunning(words, { cwd, env: { ...env, DROVER_STATE_DIR: state }, ready: /^Offers /m });
  expect(readFileSync(runnerTokenFile(recordDirectory(state)), "utf8")).toMatch(/^drv_[0-9A-Za-z]{32}\n$/);
  expect(readdirSync(recordDirectory(state)).filter((name) => name.startsWith("runner-token"))).toEqual([
    "runner-token",
  ]);
});

test("revokes one's own token last, and reports each revoked token", async () => {
  const make = async (subject: string): Promise<{ token: string; token_id: string }> =>
    (await serving.call<{ token: string; token_id: string }>("POST", "/tokens", { role: "user", subject })).json;
  const [own, other] = [await make("ada"), await make("ada")];
  const revoke = (token: string, ...words: string[]): Promise<Ran> =>
    drover(["tokens", "revoke", ...words], {
      cwd,
      env: { DROVER_STATE_DIR: join(cwd, "none"), DROVER_API_URL: serving.url, DROVER_API_KEY: token },
    });
  const status = async (token: string): Promise<number> =>
    (await serving.call("GET", "/runs", undefined, token)).status;
  const ran = await revoke(own.token, "self", other.token_id);
  expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: `${other.token_id}\nself\n` });
  expect([await status(own.token), await status(other.token)]).toEqual([401, 401]);

  const [mine, theirs] = [await make("bob"), await make("bob")];
  const all = await revoke(mine.token, "self", "--subject", "bob");
  expect(all, all.stderr).toMatchObject({ code: 0 });
  expect([await status(mine.token), await status(theirs.token)]).toEqual([401, 401]);

  const [first, second] = [await make("eve"), await make("eve")];
  const half = await revoke(first.token, first.token_id, second.token_id);
  expect(half).toMatchObject({ code: 125, stdout: `${first.token_id}\n` });
  expect(half.stderr).toContain(`Not revoked: ${second.token_id}`);
});
