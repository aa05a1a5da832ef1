import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { announcementFile, recordDirectory } from "../../src/model/state-layout.ts";
import { bin, folder, homeFolder } from "./drover.ts";
import { serve, type Serving } from "./serving.ts";

const kills: (() => void)[] = [];
afterEach(() => {
  for (const kill of kills.splice(0)) kill();
});

/** `drover runner`, once it has said what it offers. */
async function offer(serving: Serving, cwd: string) {
  const child = spawn(process.execPath, [bin, "runner", "--examples", "-x", "echo"], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: homeFolder(),
      DROVER_STATE_DIR: join(cwd, "runner"),
      DROVER_API_URL: serving.url,
      DROVER_API_KEY: serving.token,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  kills.push(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  await expect.poll(() => said).toMatch(/^Offers /m);
  /** Ends it, and gives its code and what it had said besides its offer. */
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return [await closed, said.replace(/^Offers .*\n/gm, "")];
  };
  return { stop };
}

const polls = async ({ url, token }: Serving): Promise<string> =>
  (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();

it("stops silently on a signal, right after its start and during a long poll", async () => {
  const cwd = folder();
  const serving = await serve(cwd);
  for (const signal of ["SIGTERM", "SIGINT", "SIGTERM", "SIGINT"] as const) {
    expect(await (await offer(serving, cwd)).stop(signal)).toEqual([0, ""]);
    const idle = await offer(serving, cwd);
    await expect.poll(() => polls(serving)).toMatch(/^drover_held_polls 1$/m);
    expect(await idle.stop(signal)).toEqual([0, ""]);
    const { json } = await serving.call<{ items: unknown[] }>("GET", "/runners");
    expect(json.items).toEqual([]);
  }
});

it.each(["SIGKILL", "SIGSTOP"] as const)(
  "ends, and does not ask to be registered, when the coordinator had its %s",
  async (gone) => {
    const cwd = folder();
    const serving = await serve(cwd);
    const runner = await offer(serving, cwd);
    await expect.poll(() => polls(serving)).toMatch(/^drover_held_polls 1$/m);
    process.kill(JSON.parse(readFileSync(announcementFile(recordDirectory(serving.state)), "utf8")).pid, gone);
    const [code, said] = await runner.stop("SIGTERM");
    expect(code).toBe(0);
    expect(said).not.toMatch(/\(register\)|not registered|^drover runner: re(port|gister)/m);
  },
);
