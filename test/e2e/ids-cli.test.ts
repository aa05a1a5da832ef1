import { join } from "node:path";
import { expect, it } from "vitest";
import type { Run } from "../../src/model/run.ts";
import { openTerminal, terminalTest } from "./at-terminal.ts";
import { drover, createDirectory } from "./drover.ts";
import { createProject } from "./create-project.ts";
import { startCoordinator } from "./coordinator-process.ts";

/** A coordinator without a runner: its runs stay pending. */
async function serveWithoutRunner() {
  const cwd = createDirectory();
  const coordinator = await startCoordinator(cwd);
  await coordinator.call("PUT", "/agents/build", { command: "make" });
  const submit = async (token?: string): Promise<string> =>
    (await coordinator.call<Run>("POST", "/runs", { agent_name: "build" }, token)).json.run_id;
  const env = (token = coordinator.token) => ({
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: token,
    DROVER_STATE_DIR: join(cwd, "none"),
  });
  const run = (args: string[], token?: string) => drover(args, { cwd, env: env(token) });
  return { cwd, coordinator, submit, run, env };
}

it("finds a run by the beginning or the end of its id, and names the candidates of an ambiguous one", async () => {
  const { submit, run } = await serveWithoutRunner();
  const ids = [await submit(), await submit(), await submit(), await submit()];
  const [first] = ids as [string];
  for (const query of [first, first.slice(0, 30), first.slice(-8), first.slice(-14)])
    expect(JSON.parse((await run(["runs", "show", query, "--json"])).stdout)).toMatchObject({ run_id: first });
  // Ids created in the same minute start with the same characters.
  const ambiguous = await run(["runs", "stop", first.slice(0, 6)]);
  expect(ambiguous).toMatchObject({ code: 2, stdout: "" });
  expect(ambiguous.stderr).toContain(
    `More than one run starts or ends with ${first.slice(0, 6)}: ${ids[3]}, ${ids[2]}`,
  );
  expect(ambiguous.stderr).toContain("and others");
  expect(ambiguous.stderr).toContain("DROVER-USE-008");
  const unknown = await run(["runs", "show", "ffffffff"]);
  expect(unknown).toMatchObject({ code: 2 });
  expect(unknown.stderr).toContain("Unknown run: ffffffff");
  expect((await run(["runs", "stop", first.slice(-8)])).stdout).toBe(`${first}\tcancelled\n`);
});

it("takes `last` as the newest object of the caller, not of others", async () => {
  const { submit, run, coordinator } = await serveWithoutRunner();
  const none = await run(["runs", "show", "last"]);
  expect(none).toMatchObject({ code: 2 });
  expect(none.stderr).toContain("You have no runs yet");
  const ownRun = await submit();
  const token = (await run(["tokens", "create", "ann", "--role", "user"])).stdout.trim();
  const runOfAnn = await submit(token);
  const showLast = async (as?: string) => JSON.parse((await run(["runs", "show", "last", "--json"], as)).stdout).run_id;
  expect(await showLast()).toBe(ownRun);
  expect(await showLast(token)).toBe(runOfAnn);
  expect(
    (await coordinator.call<{ items: Run[] }>("GET", "/runs?created_by=admin", undefined, token)).json.items,
  ).toEqual([]);

  const tokenLines = (await run(["tokens", "list", "--json"])).stdout.trim().split("\n");
  const { token_id } = JSON.parse(tokenLines.find((line) => line.includes('"ann"'))!);
  expect((await run(["tokens", "revoke", token_id.slice(-8)])).stdout).toBe(`${token_id}\n`);
  expect((await run(["tokens", "revoke", "last"])).stdout).toBe(`${token_id}\n`);

  const schedule = JSON.parse(
    (await run(["schedules", "add", "build", "nightly", "--cron", "0 3 * * *", "--json"])).stdout,
  );
  for (const query of ["last", schedule.schedule_id.slice(-8), schedule.schedule_id.slice(0, 30), "nightly"])
    expect(JSON.parse((await run(["schedules", "show", query, "--json"])).stdout).schedule_id).toBe(
      schedule.schedule_id,
    );
});

it("finds runs without a coordinator too, and filters lists by shortened ids and by other users' ids", async () => {
  const { run } = createProject();
  await run("exec", "true", "--session-id", "ticket-7");
  await run("exec", "echo second");
  const lines = (await run("runs", "list")).stdout.trim().split("\n");
  const [second = "", first = ""] = lines.map((line) => line.split("\t")[0]!);
  expect(second).toMatch(/^[0-9a-f-]{36}$/);
  expect((await run("runs", "show", "last")).stdout).toContain(second);
  expect((await run("runs", "show", first.slice(-8))).stdout).toContain(first);
  expect((await run("runs", "list", "--session-id", "ticket-7")).stdout).toContain(first);
  const child = await run("exec", "true", "--run-id", second);
  expect(child.code).toBe(0);
  expect((await run("runs", "list", "--parent-run-id", second.slice(-8))).code).toBe(0);
  expect((await run("runs", "list", "--since", "1h")).stdout.trim().split("\n")).toHaveLength(3);
  expect((await run("runs", "list", "--until", "1h")).stdout).toBe("");
});

terminalTest("shows short ids on a terminal, which every command takes", async () => {
  const { submit, cwd, env } = await serveWithoutRunner();
  const id = await submit();
  await submit();
  const list = openTerminal(["runs", "list"], { cwd, env: env(), columns: 80 });
  expect(await list.exitCode).toBe(0);
  expect(list.shown()).toContain(id.slice(-8));
  expect(list.shown()).not.toContain(id);
  const showLast = openTerminal(["runs", "show", id.slice(-8)], { cwd, env: env() });
  expect(await showLast.exitCode).toBe(0);
  expect(showLast.shown()).toContain(id);
});
