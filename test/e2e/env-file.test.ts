import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bin, drover, createDirectory } from "./drover.ts";
import { startCommand, startCoordinator } from "./coordinator-process.ts";

it("a runner reads its variables from --env-file and from no other file", async () => {
  const cwd = createDirectory();
  const coordinator = await startCoordinator(cwd);
  writeFileSync(
    join(cwd, ".env"),
    `# the runner of this directory\nDROVER_API_URL=${coordinator.url}\nDROVER_API_KEY='${coordinator.token}'\n`,
  );
  const env = { DROVER_STATE_DIR: join(cwd, "runner") };
  const withoutEnvFile = await drover(["runner", "-x", "echo"], { cwd, env });
  expect(withoutEnvFile.stderr).toContain("No coordinator was found");
  await startCommand(["runner", "-x", "echo", "--env-file", ".env"], { cwd, env, ready: /^Offers echo/m });
  expect((await coordinator.call<{ items: unknown[] }>("GET", "/runners")).json.items).toHaveLength(1);

  const wrongKeyEnv = { ...env, DROVER_API_KEY: "drv_not_this_one" };
  const overridden = await drover(["runner", "-x", "echo", "--env-file", ".env", "--name", "two", "--while-stdin"], {
    cwd,
    env: wrongKeyEnv,
  });
  expect(overridden.code).not.toBe(0);
  expect(overridden.stderr).toContain("DROVER-API-034");
});

it("reports the invalid line of an env file and starts nothing", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  writeFileSync(join(cwd, "my.env"), "GOOD=1\nthis is s3cret\n");
  for (const command of [["up", "--port", "0"], ["runner"]]) {
    const bad = await drover([...command, "--env-file", "my.env"], { cwd, env });
    expect(bad).toMatchObject({ code: 2, stdout: "" });
    expect(bad.stderr).toContain("my.env, line 2");
    expect(bad.stderr).toContain("DROVER-USE-009");
    expect(bad.stderr).not.toContain("s3cret");
  }
});

it("Drover, not Node, reads --env-file", () => {
  const cwd = createDirectory();
  const missing = spawnSync(bin, ["runner", "--env-file", "gone.env"], { cwd, encoding: "utf8" });
  expect(missing.stderr).toContain("Cannot read --env-file");
  expect(missing.stderr).toContain("DROVER-USE-001");
  expect(missing.status).toBe(2);
});

it("up reads --env-file for itself and its runner", async () => {
  const cwd = createDirectory();
  writeFileSync(join(cwd, "here.env"), `DROVER_STATE_DIR="${join(cwd, "kept")}"\nJOB_TIMEOUT_SECONDS=none\n`);
  const unreadable = await drover(["up", "--port", "0", "--env-file", "here.env"], { cwd });
  expect(unreadable.code).not.toBe(0);
  expect(unreadable.stderr).toContain("JOB_TIMEOUT_SECONDS must be a positive number");
});
