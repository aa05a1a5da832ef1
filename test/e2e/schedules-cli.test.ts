import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Run } from "../../src/model/run.ts";
import type { Schedule, Slot } from "../../src/model/schedule.ts";
import { drover, createDirectory } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** A coordinator with an agent that fails and one whose file has a schedule. */
async function project() {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state"), TZ: "America/New_York" };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "drover.yaml"), "agents: agents\n");
  writeFileSync(join(cwd, "agents", "fails.yaml"), 'name: fails\ncommand: "false"\n');
  const nightly = "schedules:\n  - { name: nightly, cron: 0 3 * * *, timezone: Europe/Berlin }\n";
  writeFileSync(join(cwd, "agents", "report.yaml"), `name: report\ncommand: "true"\n${nightly}`);
  mkdirSync(join(cwd, "profiles"));
  writeFileSync(join(cwd, "profiles", "shell.json"), JSON.stringify({ type: "procedural", config: {} }));
  const args = ["up", "-x", "profiles/shell.json", "--port", "0"];
  await startDrover(args, { cwd, env, ready: /drover run|http:\/\/127/ });
  const ask = (...given: string[]) => drover(given, { cwd, env });
  return {
    ask,
    async json<T>(...given: string[]): Promise<T[]> {
      const { code, stdout, stderr } = await ask(...given, "--json");
      expect(code, stderr).toBe(0);
      return stdout
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as T);
    },
  };
}

it("adds, lists, shows, runs, disables and removes schedules, and shows a failed run as failed", async () => {
  const { ask, json } = await project();
  const longTimeout = { timeout: 60_000, interval: 300 };
  await expect
    .poll(async () => (await json<Schedule>("schedules")).map(({ name }) => name), longTimeout)
    .toEqual(["nightly"]);
  const added = await ask("schedules", "add", "fails", "hourly", "--cron", "0 * * * *", "--overlap", "queue");
  expect(added, added.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining("Next:") });
  const [hourly] = (await json<Schedule>("schedules", "list", "--agent", "fails")) as [Schedule];
  expect(hourly).toMatchObject({ name: "hourly", timezone: "America/New_York", overlap: "queue", source: "api" });
  expect(hourly.next).toHaveLength(5);

  const [run] = (await json<Run>("schedules", "run", "fails/hourly")) as [Run];
  const shown = async () => (await json<Schedule & { history: Slot[] }>("schedules", "show", "hourly"))[0]?.history;
  await expect.poll(shown, longTimeout).toMatchObject([{ run_id: run.run_id, run_status: "failed", manual: true }]);
  const page = (await ask("schedules", "show", "hourly")).stdout;
  expect(page).toMatch(/failed \(exit_nonzero\), started manually/);
  expect(page).not.toMatch(/completed|success/i);
  expect((await ask("schedules")).stdout).toMatch(/hourly.*failed \(exit_nonzero\)/);

  const next = (await ask("schedules", "next", "nightly")).stdout;
  expect(next).toMatch(/Europe\/Berlin +America\/New_York \(local\)/);
  expect(next.match(/ 03:00 GMT\+[12] /g)).toHaveLength(5);
  expect((await ask("schedules", "disable", "nightly")).stderr).toContain("report/nightly is disabled");
  expect((await ask("schedules")).stdout).toMatch(/nightly.*disabled/);
  expect((await ask("schedules", "enable", "nightly")).stderr).toMatch(/is enabled; next: \w{3} /);
  expect(await ask("schedules", "remove", "nightly")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The agent report defines the schedule nightly"),
  });
  expect((await ask("schedules", "remove", "hourly")).code).toBe(0);
  expect((await json<Schedule>("schedules")).map(({ name }) => name)).toEqual(["nightly"]);
});

it("refuses an invalid schedule, with the reason and what to do", async () => {
  const { ask } = await project();
  const add = (...args: string[]) => ask("schedules", "add", "fails", "s", ...args);
  for (const [args, said] of [
    [["--cron", "0 0 3 * * *"], "has 6 fields, not five"],
    [["--cron", "0 0 30 2 *"], "never occurs"],
    [["--cron", "0 3 * * *", "--timezone", "Berlin"], "Did you mean Europe/Berlin?"],
    [["--every", "5s"], "less than 10s"],
    [["--every", "1h", "--overlap", "sometimes"], "--overlap sometimes is not one of skip"],
    [[], "Pass either --cron"],
  ] as const) {
    const refused = await add(...args);
    expect(refused.code, refused.stderr).not.toBe(0);
    expect(refused.stderr).toContain(said);
  }
  expect((await ask("schedules", "show", "nightl")).stderr).toContain("Did you mean nightly?");
});

it("previews slots without a coordinator", async () => {
  const args = ["schedules", "next", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--json"];
  const { code, stdout } = await drover(args, { cwd: createDirectory() });
  expect(code).toBe(0);
  expect((JSON.parse(stdout) as { next: string[] }).next).toHaveLength(5);
});
