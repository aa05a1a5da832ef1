import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { announcementFile, recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import { drover, createDirectory } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

function createProject() {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const env = { DROVER_STATE_DIR: state };
  const run = (...args: string[]) => drover(args, { cwd, env });
  const call = async (path: string, token: string, body?: unknown): Promise<number> => {
    const { url } = JSON.parse(readFileSync(announcementFile(recordDirectory(state)), "utf8"));
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  return { cwd, state, env, run, call };
}

/** Starts `drover up`. Returns the process of its runner and the token that the runner received. */
async function up({ cwd, env }: ReturnType<typeof createProject>) {
  const process = await startDrover(["up", "--port", "0"], { cwd, env, ready: /Drover is up at/ });
  const runner = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes("runner"));
  const environment = readFileSync(`/proc/${runner}/environ`, "utf8").split("\0");
  const key = environment.find((line) => line.startsWith("DROVER_API_KEY="))?.slice("DROVER_API_KEY=".length) ?? "";
  return { process, runner, key };
}

it("gives its runner a token that is limited to the runner role, never stored and revoked with it", async () => {
  const project = createProject();
  const keys = new Set<string>();
  for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
    const { process, runner, key } = await up(project);
    for (const old of keys) expect(await project.call("/runner/sessions", old, {})).toBe(401);
    expect(key).toMatch(/^drv_[0-9A-Za-z]{32}$/);
    expect(key).not.toBe(readFileSync(tokenFile(recordDirectory(project.state), "token"), "utf8").trim());
    // Both bodies are invalid, but the first request is already refused because of its role.
    expect([await project.call("/runs", key, {}), await project.call("/runner/sessions", key, {})]).toEqual([403, 400]);
    for (const path of ["/runs", "/tokens", "/agents", "/runners", "/metrics"])
      expect([path, await project.call(path, key)]).toEqual([path, 403]);
    for (const entry of readdirSync(project.state, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) expect(readFileSync(join(entry.parentPath, entry.name), "latin1")).not.toContain(key);
    expect((await project.run("run", "echo", "--message", "hi")).stdout).toBe('{"message":"hi"}\n');
    // The admin's own token.
    expect((await project.run("tokens", "list")).stdout.trim().split("\n")).toHaveLength(1);
    keys.add(key);
    await process.end(signal);
    await expect.poll(() => existsSync(`/proc/${runner}`)).toBe(false);
  }
  expect(keys.size).toBe(3);
});

it("keeps its runner connected when the admin token is rotated at once", async () => {
  const project = createProject();
  await up(project);
  const rotated = await project.run("tokens", "rotate", "self", "--at-once");
  expect(rotated, rotated.stderr).toMatchObject({ code: 0 });
  const run_id = (await project.run("run", "echo", "--message", "hi", "--detach", "--quiet")).stdout.trim();
  await expect
    .poll(async () => JSON.parse((await project.run("runs", "show", run_id, "--json")).stdout).status)
    .toBe("completed");
});
