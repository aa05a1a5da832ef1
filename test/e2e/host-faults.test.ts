import { DatabaseSync } from "@photostructure/sqlite";
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  announcementFile,
  databaseFile,
  recordDirectory,
  runnersDirectory,
  tokenFile,
} from "../../src/model/state-layout.ts";
import { bundle } from "./bundle.ts";
import { startCoordinator } from "./coordinator-process.ts";
import { bin, drover, exists, createDirectory } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

it("exec exits with 125 and runs nothing if the database stays locked", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const run = (...args: string[]) => drover(args, { cwd, env: { DROVER_STATE_DIR: state } });
  await run("exec", "true");
  const holder = spawn(process.execPath, [await bundle("e2e/hold-lock.ts"), databaseFile(recordDirectory(state))], {
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
  // Works again once the lock is released.
  expect((await run("exec", "touch made")).code).toBe(0);
  expect((await run("audit", "verify")).code).toBe(0);
});

it.each(["events", "claims"])(
  "fails a run at once if the record has no table %s, and reports the damage",
  async (table) => {
    const cwd = createDirectory();
    const state = join(cwd, "state");
    const run = (...args: string[]) => drover(args, { cwd, env: { DROVER_STATE_DIR: state } });
    await run("exec", "true");
    const database = new DatabaseSync(databaseFile(recordDirectory(state)));
    database.exec(`drop table ${table}`);
    database.close();
    const { code, stderr } = await run("run", "echo", "--message", "hi");
    expect(code).toBe(125);
    expect(stderr).toMatch(new RegExp(`drover.db is damaged: no such table: ${table}.*DROVER-STA-004`));
  },
);

it("exec exits with 125 and runs nothing if the disk is full before the start is recorded", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const onSmallDisk = [
    "unshare",
    "-Urm",
    "sh",
    "-c",
    `mkdir -p '${state}' && mount -t tmpfs -o size=64k none '${state}' && exec "$@"`,
    "sh",
  ];
  const { code, stderr } = await drover(["exec", "touch made"], {
    cwd,
    commandPrefix: onSmallDisk,
    env: { DROVER_STATE_DIR: state },
  });
  expect(code).toBe(125);
  expect(stderr).toContain("DROVER-STA-002");
  expect(exists(join(cwd, "made"))).toBe(false);
});

it("never reports success if the disk fills up while the command runs", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  // The command itself fills the disk, so that its end cannot be recorded.
  const fill = `dd if=/dev/zero of='${state}/filler' bs=4k 2>/dev/null; touch '${cwd}/made'; true`;
  const onSmallDisk = [
    "unshare",
    "-Urm",
    "sh",
    "-c",
    `mkdir -p '${state}' && mount -t tmpfs -o size=2m none '${state}' && exec "$@"`,
    "sh",
  ];
  const { code, stderr } = await drover(["exec", fill], {
    cwd,
    commandPrefix: onSmallDisk,
    env: { DROVER_STATE_DIR: state },
  });
  expect(exists(join(cwd, "made"))).toBe(true);
  expect(code).toBe(125);
  expect(stderr).toContain("DROVER-STA-002");
});

it("runs the next command although a killed one left a corrupt audit row", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const run = (...args: string[]) => drover(args, { cwd, env: { DROVER_STATE_DIR: state } });
  let pid = 0;
  const killedExec = drover(["exec", "sleep 60"], {
    cwd,
    env: { DROVER_STATE_DIR: state },
    onSpawn: (spawned) => (pid = spawned),
  });
  await expect.poll(async () => (await run("runs", "list", "--quiet")).stdout).toContain("sleep 60");
  process.kill(pid, "SIGKILL");
  await killedExec;
  const database = new DatabaseSync(databaseFile(recordDirectory(state)));
  database.exec("update audit_rows set body = 'not JSON' where kind = 'start'");
  database.close();
  const next = await run("exec", "echo fine");
  expect(next).toMatchObject({ code: 0, stdout: "fine\n" });
  expect(next.stderr).toContain("checking for interrupted runs failed");
  expect((await run("audit", "verify")).code).toBe(1);
});

it("a full disk behind stdout ends the command, is reported and is recorded", async () => {
  const cwd = createDirectory();
  const line = `exec '${process.execPath}' '${bin}' exec 'echo hi; sleep 60' >/dev/full`;
  const { code, stderr } = await drover([], {
    cwd,
    commandPrefix: ["sh", "-c", line],
    env: { DROVER_STATE_DIR: join(cwd, "state") },
  });
  expect(code).toBe(130);
  expect(stderr).toContain("cannot write the output");
  const [run] = (
    await drover(["runs", "list", "--json"], { cwd, env: { DROVER_STATE_DIR: join(cwd, "state") } })
  ).stdout
    .trim()
    .split("\n");
  expect(JSON.parse(run!)).toMatchObject({ status: "cancelled" });
});

const limitDescriptors = (limit: number): string[] => ["sh", "-c", `ulimit -n ${limit}; exec "$@"`, "sh"];

it("a runner without descriptors claims nothing and says so; one with enough for a single run takes one at a time", async () => {
  const cwd = createDirectory();
  const run = (limit: number) =>
    drover(["run", "echo", "--message", "hi"], { cwd, commandPrefix: limitDescriptors(limit) });
  const withoutDescriptors = await run(40);
  expect(withoutDescriptors).toMatchObject({ code: 125, stdout: "" });
  expect(withoutDescriptors.stderr).toMatch(/ulimit -n`\. \[DROVER-EXE-010\]/);
  expect(await run(56)).toMatchObject({ code: 0, stdout: '{"message":"hi"}\n' });
});

it("a run fails with advice if its runner runs out of descriptors, and every recorded start has an end", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  for (const name of ["profiles", "agents"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "many.json"), '{ "type": "many", "module": "many.mjs" }');
  writeFileSync(join(cwd, "agents", "many.json"), '{ "name": "many", "type": "autonomous", "executor": "many" }');
  writeFileSync(
    join(cwd, "many.mjs"),
    `export { executor };
     import { defineExecutor } from "drover";
     const executor = defineExecutor({ name: "many", async execute({ runCli }) {
       await Promise.all(Array.from({ length: 40 }, () => runCli({ command: ["sleep", "1000"] })));
     } });`,
  );
  const result = await drover(["run", "many", "--prompt", "x", "--json"], {
    cwd,
    env,
    commandPrefix: limitDescriptors(64),
  });
  expect(JSON.parse(result.stdout)).toMatchObject({
    status: "failed",
    reason: "internal",
    error: expect.stringMatching(/reached its limit of open files \(EMFILE\); raise `ulimit -n`/),
  });
  const { stdout } = await drover(["runs", "events", JSON.parse(result.stdout).run_id, "--json"], { cwd, env });
  const types = stdout
    .trim()
    .split("\n")
    .map((line): string => JSON.parse(line).event.type);
  const count = (type: string) => types.filter((each) => each === type).length;
  expect(count("execution_started")).toBeGreaterThan(5);
  expect(count("execution_ended")).toBe(count("execution_started"));
});

it("says why a run waits for a runner that has too few descriptors for its slots", async () => {
  const cwd = createDirectory();
  const state = join(cwd, "state");
  const env = { DROVER_STATE_DIR: state };
  mkdirSync(join(cwd, "agents"));
  writeFileSync(join(cwd, "agents", "long.json"), '{ "name": "long", "command": "sleep 1000" }');
  await startDrover(["up", "--port", "0", "--slots", "9"], {
    cwd,
    env,
    commandPrefix: limitDescriptors(64),
    ready: /Drover is up at/,
  });
  const { url } = JSON.parse(readFileSync(announcementFile(recordDirectory(state)), "utf8"));
  const authorization = `Bearer ${readFileSync(tokenFile(recordDirectory(state), "token"), "utf8").trim()}`;
  const call = async (path: string, body?: object): Promise<{ items: { run_id: string }[]; why: unknown[] }> =>
    (
      await fetch(url + path, {
        headers: { authorization, "content-type": "application/json" },
        ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
      })
    ).json() as never;
  for (let n = 0; n < 9; n++) await call("/runs", { agent_name: "long" });
  await expect
    .poll(async () => {
      const { items } = await call("/runs?status=pending");
      return (await call(`/runs/${items[0]?.run_id}/why`)).why;
    })
    .toContainEqual({ demand: "descriptors", detail: expect.stringMatching(/takes no run.*raise `ulimit -n`/) });
});

it.runIf(process.platform === "linux")(
  "a runner starts although its killed predecessor is still a zombie",
  async () => {
    const cwd = createDirectory();
    const coordinator = await startCoordinator(cwd);
    const state = join(cwd, "runner");
    const env = { DROVER_STATE_DIR: state, DROVER_API_URL: coordinator.url, DROVER_API_KEY: coordinator.token };
    const options = { cwd, env, ready: /^Offers /m };
    const args = ["runner", "-x", "echo"];
    const readLock = (): { pid: number } => {
      const runners = runnersDirectory(recordDirectory(state));
      return JSON.parse(readFileSync(join(runners, readdirSync(runners)[0]!, "lock"), "utf8"));
    };
    // Like many programs that are pid 1 in a container, this parent never reaps its children.
    const commandPrefix = ["sh", "-c", '"$@" & exec sleep 1000', "sh"];
    const parent = await startDrover(args, { ...options, commandPrefix });
    const { pid } = readLock();
    try {
      // The shell itself would still reap it.
      await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n");
    } finally {
      process.kill(pid, "SIGKILL");
    }
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
    expect(readLock().pid).toBe(pid);

    const successor = await startDrover(args, options);
    expect(successor.output).toMatch(/^Offers echo to /m);
    expect(readLock().pid).toBe(successor.pid);
    expect(readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
  },
);
