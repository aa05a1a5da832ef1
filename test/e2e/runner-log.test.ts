import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { drover, createDirectory } from "./drover.ts";
import { runToEnd, startCoordinator } from "./coordinator-process.ts";
import { startDrover } from "./start-drover.ts";

it("names the coordinator, and each run with its agent, outcome and duration", async () => {
  const cwd = createDirectory();
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents", "good.yaml"), "name: good\ncommand: 'true'\n");
  writeFileSync(join(cwd, "agents", "bad.yaml"), "name: bad\ncommand: 'false'\n");
  const coordinator = await startCoordinator(cwd);
  const env = {
    DROVER_STATE_DIR: join(cwd, "runner"),
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: coordinator.token,
  };
  const runner = await startDrover(["runner", "-x", "procedural"], { cwd, env, ready: /^Offers /m });
  expect(runner.output).toMatch(new RegExp(`^Offers procedural to ${coordinator.url}$`, "m"));
  const goodRun = await runToEnd(coordinator, { agent_name: "good" });
  const badRun = await runToEnd(coordinator, { agent_name: "bad" });
  const time = "20\\d\\d-\\S+Z";
  const duration = "\\d[\\d.]*(?:ms|s|m\\d+s)";
  await expect.poll(() => runner.output).toMatch(new RegExp(`^${time} run ${goodRun.run_id} of good: started$`, "m"));
  await expect
    .poll(() => runner.output)
    .toMatch(new RegExp(`^${time} run ${goodRun.run_id} of good: completed after ${duration}$`, "m"));
  await expect
    .poll(() => runner.output)
    .toMatch(new RegExp(`^${time} run ${badRun.run_id} of bad: failed \\(exit_nonzero\\) after ${duration}$`, "m"));
});

it("says what happens to active runs at the first and at the second signal", async () => {
  const cwd = createDirectory();
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents", "slow.yaml"), "name: slow\ncommand: sleep 600\n");
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const up = await startDrover(["up", "--port", "0"], { cwd, env, ready: /^Drover is up/m });
  const submitted = await drover(["run", "slow", "--detach", "--json"], { cwd, env });
  const { run_id } = JSON.parse(submitted.stdout) as { run_id: string };
  await expect.poll(() => up.output).toContain(`run ${run_id} of slow: started`);
  const firstSignal = up.end("SIGINT");
  await expect
    .poll(() => up.output)
    .toContain("Stopping: 1 run is still active. It has 30 s to finish. Press Ctrl-C again to stop at once.\n");
  process.kill(up.pid, "SIGINT");
  expect(await firstSignal).toBe(0);
  expect(up.output).toMatch(new RegExp(`run ${run_id} of slow: stopped after \\S+ and put back in the queue, because`));
  expect(up.output).not.toContain("of slow: cancelled");
  expect(up.output).toMatch(/\nStopped\.\n$/);
  expect(JSON.parse((await drover(["runs", "show", run_id, "--json"], { cwd, env })).stdout)).toMatchObject({
    status: "pending",
  });
});
