import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import { recordDirectory, tokenFile } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { isTerminal } from "../../src/model/states.ts";
import { reservePort } from "../reserve-port.ts";
import { bin, type Lifetime, homeFolder, trusted } from "./drover.ts";

/** A coordinator that other processes talk to. */
export interface Serving {
  url: string;
  token: string;
  state: string;
  /** A port for something that stands between it and a command: it answers for that address too. */
  gatePort: number;
  /** As curl would: a method, a path, and JSON or nothing. */
  call<T>(method: string, path: string, body?: unknown, token?: string | null): Promise<{ status: number; json: T }>;
}

interface Living {
  pid: number;
  closed: Promise<number | null>;
  kill(): void;
}
const living: Record<Lifetime, Living[]> = { test: [], file: [] };
const endAll = async (lifetime: Lifetime): Promise<void> => {
  for (const child of living[lifetime]) child.kill();
  await Promise.all(living[lifetime].splice(0).map(({ closed }) => closed));
};
afterEach(() => endAll("test"));
afterAll(() => endAll("file"));

/** `drover ARGS` for its lifetime; resolves once it has said `ready` on stderr. */
export async function keepRunning(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string>; ready: RegExp; lifetime?: Lifetime },
): Promise<string> {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...options.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  living[options.lifetime ?? "test"].push({ pid: child.pid ?? 0, closed, kill: () => void child.kill("SIGKILL") });
  let said = "";
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    void closed.then(() => reject(new Error(`drover ${args.join(" ")} ended: ${said}`)));
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
      if (options.ready.test(said)) resolve(said);
    });
  });
}

/** With what code one of them ends. */
export function exitOf(pid: number): Promise<number | null> {
  const found = living.test.find((child) => child.pid === pid);
  if (found === undefined) throw new Error(`${pid} was not started by keepRunning`);
  return found.closed;
}

/** `drover coordinator` on a free port. */
export async function serve(
  cwd: string,
  env: Record<string, string> = {},
  lifetime: Lifetime = "test",
): Promise<Serving> {
  const state = join(cwd, "state");
  const gatePort = await reservePort();
  const said = await keepRunning(["coordinator", "--port", "0", "--public-url", `http://127.0.0.1:${gatePort}`], {
    cwd,
    env: { DROVER_STATE_DIR: state, ...env },
    ready: /^Serving \S+/m,
    lifetime,
  });
  const url = /^Serving (\S+)/m.exec(said)?.[1] ?? "";
  const token = readFileSync(
    tokenFile(recordDirectory(state), env["DATABASE_URL"] ? "fleet-token" : "token"),
    "utf8",
  ).trim();
  return {
    url,
    token,
    state,
    gatePort,
    async call(method, path, body, as = token) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(as === null ? {} : { authorization: `Bearer ${as}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      // what is expected of it is the test's to say
      return { status: response.status, json: (text === "" ? null : JSON.parse(text)) as never };
    },
  };
}

/** `drover runner`, once it is registered. Its state is its own, as on another machine. */
export async function offer(
  serving: Serving,
  cwd: string,
  name: string,
  args: readonly string[],
  lifetime: Lifetime = "test",
): Promise<void> {
  const env = {
    DROVER_STATE_DIR: join(cwd, `runner-${name}`),
    DROVER_API_URL: serving.url,
    DROVER_API_KEY: serving.token,
  };
  await keepRunning(["runner", ...args, "--name", name], { cwd, env, ready: /^Offers /m, lifetime });
}

/** Asks for a run and waits for its end. */
export async function runToEnd(serving: Serving, request: unknown): Promise<Run> {
  const { status, json } = await serving.call<Run>("POST", "/runs", request);
  if (status !== 201) throw new Error(`POST /runs was answered with ${status}: ${JSON.stringify(json)}`);
  const since = performance.now();
  for (;;) {
    const { json: run } = await serving.call<Run>("GET", `/runs/${json.run_id}`);
    if (isTerminal(run.status) || performance.now() > since + 200_000) return run;
    await pauseBetweenLooks(since);
  }
}

/** Ever longer, up to a quarter of a second: each look costs what runs meanwhile a few milliseconds of its processor. */
export function pauseBetweenLooks(since: number): Promise<void> {
  const ms = Math.min(250, 20 + (performance.now() - since) / 10);
  return new Promise((resolve) => setTimeout(resolve, ms));
}
