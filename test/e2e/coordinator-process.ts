import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { hasEnded } from "../../src/model/states.ts";
import { reservePort } from "../reserve-port.ts";
import { bin, type Lifetime, getTestHome, trusted } from "./drover.ts";

/** A coordinator in its own process. */
export interface CoordinatorProcess {
  url: string;
  token: string;
  state: string;
  /** A port for a proxy between a command and the coordinator, which accepts that address as its own. */
  proxyPort: number;
  /** Sends a request with an optional JSON body. */
  call<T>(method: string, path: string, body?: unknown, token?: string | null): Promise<{ status: number; json: T }>;
}

interface RunningChild {
  pid: number;
  closed: Promise<number | null>;
  kill(): void;
}
const runningChildren: Record<Lifetime, RunningChild[]> = { test: [], file: [] };
const endAll = async (lifetime: Lifetime): Promise<void> => {
  for (const child of runningChildren[lifetime]) child.kill();
  await Promise.all(runningChildren[lifetime].splice(0).map(({ closed }) => closed));
};
afterEach(() => endAll("test"));
afterAll(() => endAll("file"));

/** Starts `drover ARGS` for its lifetime. Resolves once its stderr matches `ready`. */
export async function startCommand(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string>; ready: RegExp; lifetime?: Lifetime },
): Promise<string> {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_TRUST: trusted, ...options.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  runningChildren[options.lifetime ?? "test"].push({
    pid: child.pid ?? 0,
    closed,
    kill: () => void child.kill("SIGKILL"),
  });
  let output = "";
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    void closed.then(() => reject(new Error(`drover ${args.join(" ")} ended: ${output}`)));
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
      if (options.ready.test(output)) resolve(output);
    });
  });
}

/** Resolves with the exit code of a process that keepRunning started. */
export function waitForExit(pid: number): Promise<number | null> {
  const found = runningChildren.test.find((child) => child.pid === pid);
  if (found === undefined) throw new Error(`${pid} was not started by keepRunning`);
  return found.closed;
}

/** Starts `drover coordinator` on a free port. */
export async function startCoordinator(
  cwd: string,
  env: Record<string, string> = {},
  lifetime: Lifetime = "test",
): Promise<CoordinatorProcess> {
  const state = join(cwd, "state");
  const proxyPort = await reservePort();
  const output = await startCommand(["coordinator", "--port", "0", "--public-url", `http://127.0.0.1:${proxyPort}`], {
    cwd,
    env: { DROVER_STATE_DIR: state, ...env },
    ready: /^Serving \S+/m,
    lifetime,
  });
  const url = /^Serving (\S+)/m.exec(output)?.[1] ?? "";
  const token = readFileSync(
    tokenFile(recordDirectory(state), env["DATABASE_URL"] ? "fleet-token" : "token"),
    "utf8",
  ).trim();
  return {
    url,
    token,
    state,
    proxyPort,
    async call(method, path, body, bearer = token) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      // Each caller states the type that it expects.
      return { status: response.status, json: (text === "" ? null : JSON.parse(text)) as never };
    },
  };
}

/** Starts `drover runner` with its own state, as on another machine. Resolves once it is registered. */
export async function startRunner(
  coordinator: CoordinatorProcess,
  cwd: string,
  name: string,
  args: readonly string[],
  lifetime: Lifetime = "test",
): Promise<void> {
  const env = {
    DROVER_STATE_DIR: join(cwd, `runner-${name}`),
    DROVER_API_URL: coordinator.url,
    DROVER_API_KEY: coordinator.token,
  };
  await startCommand(["runner", ...args, "--name", name], { cwd, env, ready: /^Offers /m, lifetime });
}

/** Submits a run and waits for its end. */
export async function runToEnd(coordinator: CoordinatorProcess, request: unknown): Promise<Run> {
  const { status, json } = await coordinator.call<Run>("POST", "/runs", request);
  if (status !== 201) throw new Error(`POST /runs was answered with ${status}: ${JSON.stringify(json)}`);
  const since = performance.now();
  for (;;) {
    const { json: run } = await coordinator.call<Run>("GET", `/runs/${json.run_id}`);
    if (hasEnded(run.status) || performance.now() > since + 200_000) return run;
    await pauseBetweenPolls(since);
  }
}

/** Pauses longer and longer, up to a quarter of a second, because each poll takes CPU time from the runs. */
export function pauseBetweenPolls(since: number): Promise<void> {
  const ms = Math.min(250, 20 + (performance.now() - since) / 10);
  return new Promise((resolve) => setTimeout(resolve, ms));
}
