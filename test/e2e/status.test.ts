import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { drover, folder, root } from "./drover.ts";
import { place } from "./place.ts";
import { keepRunning, offer, runToEnd, serve, type Serving } from "./serving.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** A coordinator that has two agents, with a runner that has one slot. */
async function startFleet(): Promise<{ cwd: string; serving: Serving }> {
  const cwd = folder();
  mkdirSync(join(cwd, "agents"));
  const agents = { long: "sleep 600", fail: "false" };
  for (const [name, command] of Object.entries(agents))
    writeFileSync(join(cwd, "agents", `${name}.yaml`), `name: ${name}\ncommand: "${command}"\n`);
  const serving = await serve(cwd);
  await offer(serving, cwd, "one", ["-x", "procedural", "--slots", "1"]);
  return { cwd, serving };
}

describe("drover status", () => {
  it("says what serves, who runs what, what is pending and why, and what failed", async () => {
    const { cwd, serving } = await startFleet();
    const env = { DROVER_STATE_DIR: serving.state };
    const failed = await runToEnd(serving, { agent_name: "fail" });
    expect(failed.status).toBe("failed");
    const first = (await serving.call<{ run_id: string }>("POST", "/runs", { agent_name: "long" })).json;
    await expect
      .poll(async () => (await serving.call<{ status: string }>("GET", `/runs/${first.run_id}`)).json.status, {
        timeout: 60_000,
      })
      .toBe("running");
    const second = (await serving.call<{ run_id: string }>("POST", "/runs", { agent_name: "long" })).json;
    const { code, stdout, stderr } = await drover(["status"], { cwd, env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`serving +${serving.url}, version ${version.replaceAll(".", "\\.")}, SQLite\n`));
    expect(stdout).toMatch(/since +20\d\d-\S+Z \(\d+s ago\)/);
    expect(stdout).toContain(`${serving.state} (DROVER_STATE_DIR)`);
    expect(stdout).toContain("1 running, 1 pending, 0 open questions, 0 parked, 1 failed in the last 24 h");
    expect(stdout).toMatch(/^\S*procedural\S*\tonline\tprocedural\t\S+\t1 of 1\t/m);
    expect(stdout).toContain(`Running\n${first.run_id}\tlong\trunning\t`);
    expect(stdout).toMatch(new RegExp(`Pending\n${second.run_id}\tlong\t\\d+s ago\t\\S+`));
    expect(stdout).toContain(`${failed.run_id}\tfail\texit_nonzero\t`);
    const json = JSON.parse((await drover(["status", "--json"], { cwd, env })).stdout);
    expect(json).toMatchObject({
      coordinator: { url: serving.url, version, engine: "sqlite", role: "admin" },
      state: { directory: serving.state },
      activity: {
        runners: [{ running: 1, slots: 1 }],
        running: { count: 1 },
        pending: { items: [{ run_id: second.run_id, why: expect.any(Array) }] },
        failed: { items: [{ run_id: failed.run_id }] },
      },
    });
    await Promise.all([first, second].map(({ run_id }) => serving.call("POST", `/runs/${run_id}/stop`)));
  });

  it("shows an ordinary user only what belongs to them", async () => {
    const { cwd, serving } = await startFleet();
    await runToEnd(serving, { agent_name: "fail" });
    const { json } = await serving.call<{ token: string }>("POST", "/tokens", { role: "user", subject: "ada" });
    const env = { DROVER_API_URL: serving.url, DROVER_API_KEY: json.token };
    const { code, stdout } = await drover(["status"], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/you are +ada \(user\)/);
    expect(stdout).toContain("on the coordinator's machine");
    expect(stdout).toContain("0 failed in the last 24 h");
    expect(stdout).not.toContain("exit_nonzero");
  });

  it("says how to start if nothing serves, shows the record, and exits with 1", async () => {
    const { run, state } = place();
    const empty = await run("status");
    expect(empty.code).toBe(1);
    expect(empty.stdout).toMatch(/serving +nothing: no coordinator is running here/);
    expect(empty.stdout).toContain(state);
    expect(empty.stderr).toContain("Start a coordinator and a runner here: drover up\n");
    await run("exec", "exit 3");
    const recorded = await run("status");
    expect(recorded.code).toBe(1);
    expect(recorded.stdout).toContain("1 failed in the last 24 h");
    expect(JSON.parse((await run("status", "--json")).stdout)).toMatchObject({ coordinator: null });
  });

  it("says that a coordinator named by DROVER_API_URL does not answer", async () => {
    const env = { DROVER_API_URL: "http://127.0.0.1:9", DROVER_API_KEY: "drv_x" };
    const { code, stderr } = await drover(["status"], { cwd: folder(), env });
    expect(code).toBe(125);
    expect(stderr).toContain("http://127.0.0.1:9");
  });

  it("shows what `drover up` serves, in the same directory", async () => {
    const cwd = folder();
    const env = { DROVER_STATE_DIR: join(cwd, "state") };
    const said = await keepRunning(["up", "--port", "0", "-x", "echo"], {
      cwd,
      env,
      ready: /^Press Ctrl-C to stop/m,
    });
    const { code, stdout } = await drover(["status"], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toContain(/Drover is up at (\S+)/.exec(said)?.[1]);
    expect(stdout).toMatch(/^\S+\tonline\techo\t/m);
  });
});
