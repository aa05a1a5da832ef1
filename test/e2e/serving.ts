import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Run } from "../../src/model/run.ts";
import { bin } from "./drover.ts";

/** A coordinator that other processes talk to. */
export interface Serving {
  url: string;
  token: string;
  state: string;
  /** As curl would: a method, a path, and JSON or nothing. */
  call<T>(method: string, path: string, body?: unknown, token?: string | null): Promise<{ status: number; json: T }>;
}

const living: { pid: number; closed: Promise<number | null>; kill: () => void }[] = [];
afterEach(async () => {
  for (const child of living) child.kill();
  await Promise.all(living.splice(0).map(({ closed }) => closed));
});

/** `drover ARGS` for as long as the test takes; resolves once it has said `ready` on stderr. */
export async function keepRunning(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string>; ready: RegExp },
): Promise<string> {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: tmpdir(), ...options.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  living.push({ pid: child.pid ?? 0, closed, kill: () => void child.kill("SIGKILL") });
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
  const found = living.find((child) => child.pid === pid);
  if (found === undefined) throw new Error(`${pid} was not started by keepRunning`);
  return found.closed;
}

/** `drover coordinator` on a free port. */
export async function serve(cwd: string, env: Record<string, string> = {}): Promise<Serving> {
  const state = join(cwd, "state");
  const said = await keepRunning(["coordinator", "--port", "0"], {
    cwd,
    env: { DROVER_STATE_DIR: state, ...env },
    ready: /^Serving \S+/m,
  });
  const url = /^Serving (\S+)/m.exec(said)?.[1] ?? "";
  const token = readFileSync(join(state, env["DATABASE_URL"] ? "fleet-token" : "token"), "utf8").trim();
  return {
    url,
    token,
    state,
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
export async function offer(serving: Serving, cwd: string, name: string, args: readonly string[]): Promise<void> {
  const env = {
    DROVER_STATE_DIR: join(cwd, `runner-${name}`),
    DROVER_API_URL: serving.url,
    DROVER_API_KEY: serving.token,
  };
  await keepRunning(["runner", ...args, "--name", name], { cwd, env, ready: /^Offers /m });
}

/** Asks for a run and waits for its end. */
export async function runToEnd(serving: Serving, request: unknown): Promise<Run> {
  const { status, json } = await serving.call<Run>("POST", "/runs", request);
  if (status !== 201) throw new Error(`POST /runs was answered with ${status}: ${JSON.stringify(json)}`);
  for (const until = Date.now() + 200_000; ;) {
    const { json: run } = await serving.call<Run>("GET", `/runs/${json.run_id}`);
    if (["completed", "failed", "cancelled"].includes(run.status) || Date.now() > until) return run;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
