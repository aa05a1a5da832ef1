import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, test } from "vitest";
import { bin, drover, createDirectory, getTestHome, trusted } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** A project with an agent that works until a file appears. */
function createProject() {
  const cwd = createDirectory();
  for (const path of ["agents", "scripts"]) mkdirSync(join(cwd, path));
  writeFileSync(
    join(cwd, "agents", "slow.yaml"),
    "name: slow\ncommand: sh scripts/slow.sh\nexpose: tool\nmax_concurrent: 2\n",
  );
  writeFileSync(
    join(cwd, "scripts", "slow.sh"),
    `touch ${cwd}/began; until [ -e ${cwd}/go ]; do sleep 0.05; done; echo '{"slow": true}'\n`,
  );
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const command = (...args: string[]) => drover(args, { cwd, env });
  return { cwd, env, command, letGo: () => writeFileSync(join(cwd, "go"), "") };
}

async function connect({ cwd, env }: ReturnType<typeof createProject>, extraEnv: Record<string, string> = {}) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bin, "mcp"],
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_TRUST: trusted, ...env, ...extraEnv },
    stderr: "inherit",
  });
  const client = new Client({ name: "drover-tests", version: "1" });
  await client.connect(transport);
  return client;
}

const patience = { timeout: 60_000 };

async function runs(project: ReturnType<typeof createProject>): Promise<Record<string, unknown>[]> {
  const { stdout } = await project.command("runs", "list", "--agent", "slow", "--json");
  return stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>); // The format in which the command prints runs.
}

test("over stdio and without a coordinator, run_<agent> reports progress and returns the result", async () => {
  const project = createProject();
  const client = await connect(project);
  try {
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("run_slow");
    const progress: (string | undefined)[] = [];
    const call = client.callTool(
      { name: "run_slow", arguments: {} },
      { onprogress: ({ message }) => progress.push(message) },
    );
    await expect.poll(() => existsSync(join(project.cwd, "began")), patience).toBe(true);
    project.letGo();
    expect(await call).toMatchObject({ structuredContent: { slow: true } });
    expect(progress[0]).toMatch(/^run \S+ started$/);
  } finally {
    await client.close();
  }
  expect(await runs(project)).toMatchObject([{ status: "completed", trigger_type: "agent" }]);
});

test("through a coordinator, a client that disconnects does not stop the run", async () => {
  const project = createProject();
  await startDrover(["up", "--port", "0"], { cwd: project.cwd, env: project.env, ready: /Drover is up at/ });
  const client = await connect(project);
  const call = client.callTool({ name: "run_slow", arguments: {} }).catch((error: unknown) => error);
  await expect.poll(() => existsSync(join(project.cwd, "began")), patience).toBe(true);
  await client.close();
  expect(await call).toBeInstanceOf(Error);
  expect(await runs(project)).toMatchObject([{ status: "running", created_by: "admin" }]);
  project.letGo();
  await expect.poll(async () => (await runs(project))[0], patience).toMatchObject({ status: "completed" });
  const next = await connect(project);
  try {
    const { run_id } = (await runs(project))[0]!;
    const waitResult = await next.callTool({ name: "wait_run", arguments: { run_id } });
    expect(waitResult).toMatchObject({ structuredContent: { status: "completed", result_data: { slow: true } } });
  } finally {
    await next.close();
  }
});

test("inside a run, drover mcp starts child runs of that run", async () => {
  const project = createProject();
  project.letGo();
  await startDrover(["up", "--port", "0"], { cwd: project.cwd, env: project.env, ready: /Drover is up at/ });
  const parent = (await project.command("run", "slow", "--detach")).stdout.trim();
  const client = await connect(project, { DROVER_RUN_ID: parent });
  try {
    const answer = await client.callTool({ name: "run_slow", arguments: {} });
    const run_id = String(answer._meta?.["drover/run_id"]);
    const { stdout } = await project.command("runs", "show", run_id, "--json");
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ parent_run_id: parent, trigger_type: "agent" });
  } finally {
    await client.close();
  }
});

/** Starts a run through `drover mcp` without a coordinator. */
async function startRun({ cwd, env }: ReturnType<typeof createProject>) {
  const child = spawn(process.execPath, [bin, "mcp"], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_TRUST: trusted, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = async (id: number, method: string, params: object): Promise<void> => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    expect(JSON.parse((await lines.next()).value ?? "")).toMatchObject({ id });
  };
  const clientInfo = { name: "drover-tests", version: "1" };
  await send(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  await send(2, "tools/call", { name: "start_run", arguments: { agent: "slow" } });
  await expect.poll(() => existsSync(join(cwd, "began")), patience).toBe(true);
  return { child, closed };
}

test("without a coordinator, drover mcp outlives its client until its runs have ended", async () => {
  const project = createProject();
  const { child, closed } = await startRun(project);
  child.stdin.end();
  project.letGo();
  expect(await closed).toEqual([0, null]);
  expect(await runs(project)).toMatchObject([{ status: "completed" }]);
});

test("without a coordinator, a signal to drover mcp stops its runs", async () => {
  const project = createProject();
  const { child, closed } = await startRun(project);
  child.kill("SIGTERM");
  expect(await closed).toEqual([0, null]);
  expect(await runs(project)).toMatchObject([{ status: "cancelled" }]);
});
