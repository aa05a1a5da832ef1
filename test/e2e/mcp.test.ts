import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, test } from "vitest";
import { bin, drover, folder, homeFolder, trusted } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** A project with an agent that works until it is let go. */
function project() {
  const cwd = folder();
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

async function connect({ cwd, env }: ReturnType<typeof project>, more: Record<string, string> = {}) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bin, "mcp"],
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...env, ...more },
    stderr: "inherit",
  });
  const client = new Client({ name: "drover-tests", version: "1" });
  await client.connect(transport);
  return client;
}

const patience = { timeout: 60_000 };

async function runs(place: ReturnType<typeof project>): Promise<Record<string, unknown>[]> {
  const { stdout } = await place.command("runs", "list", "--agent", "slow", "--json");
  return stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>); // what the command prints
}

test("over stdio and without a coordinator, run_<agent> reports progress and returns the result", async () => {
  const place = project();
  const client = await connect(place);
  try {
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("run_slow");
    const said: (string | undefined)[] = [];
    const call = client.callTool(
      { name: "run_slow", arguments: {} },
      { onprogress: ({ message }) => said.push(message) },
    );
    await expect.poll(() => existsSync(join(place.cwd, "began")), patience).toBe(true);
    place.letGo();
    expect(await call).toMatchObject({ structuredContent: { slow: true } });
    expect(said[0]).toMatch(/^run \S+ started$/);
  } finally {
    await client.close();
  }
  expect(await runs(place)).toMatchObject([{ status: "completed", trigger_type: "agent" }]);
});

test("through a coordinator, a client that disconnects does not stop the run", async () => {
  const place = project();
  await startDrover(["up", "--port", "0"], { cwd: place.cwd, env: place.env, ready: /Drover is up at/ });
  const client = await connect(place);
  const call = client.callTool({ name: "run_slow", arguments: {} }).catch((error: unknown) => error);
  await expect.poll(() => existsSync(join(place.cwd, "began")), patience).toBe(true);
  await client.close();
  expect(await call).toBeInstanceOf(Error);
  expect(await runs(place)).toMatchObject([{ status: "running", created_by: "admin" }]);
  place.letGo();
  await expect.poll(async () => (await runs(place))[0], patience).toMatchObject({ status: "completed" });
  const next = await connect(place);
  try {
    const { run_id } = (await runs(place))[0]!;
    const found = await next.callTool({ name: "wait_run", arguments: { run_id } });
    expect(found).toMatchObject({ structuredContent: { status: "completed", result_data: { slow: true } } });
  } finally {
    await next.close();
  }
});

test("inside a run, drover mcp starts child runs of that run", async () => {
  const place = project();
  place.letGo();
  await startDrover(["up", "--port", "0"], { cwd: place.cwd, env: place.env, ready: /Drover is up at/ });
  const parent = (await place.command("run", "slow", "--detach")).stdout.trim();
  const client = await connect(place, { DROVER_RUN_ID: parent });
  try {
    const answer = await client.callTool({ name: "run_slow", arguments: {} });
    const run_id = String(answer._meta?.["drover/run_id"]);
    const { stdout } = await place.command("runs", "show", run_id, "--json");
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ parent_run_id: parent, trigger_type: "agent" });
  } finally {
    await client.close();
  }
});

/** `drover mcp` without a coordinator, once it has started a run. */
async function startedRun({ cwd, env }: ReturnType<typeof project>) {
  const child = spawn(process.execPath, [bin, "mcp"], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (id: number, method: string, params: object): Promise<void> => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    expect(JSON.parse((await lines.next()).value ?? "")).toMatchObject({ id });
  };
  const clientInfo = { name: "drover-tests", version: "1" };
  await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  await ask(2, "tools/call", { name: "start_run", arguments: { agent: "slow" } });
  await expect.poll(() => existsSync(join(cwd, "began")), patience).toBe(true);
  return { child, closed };
}

test("without a coordinator, drover mcp outlives its client until its runs have ended", async () => {
  const place = project();
  const { child, closed } = await startedRun(place);
  child.stdin.end();
  place.letGo();
  expect(await closed).toEqual([0, null]);
  expect(await runs(place)).toMatchObject([{ status: "completed" }]);
});

test("without a coordinator, a signal to drover mcp stops its runs", async () => {
  const place = project();
  const { child, closed } = await startedRun(place);
  child.kill("SIGTERM");
  expect(await closed).toEqual([0, null]);
  expect(await runs(place)).toMatchObject([{ status: "cancelled" }]);
});
