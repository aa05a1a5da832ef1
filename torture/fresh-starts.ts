import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { rawCall } from "../test/http-call.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { upTo, waitFor } from "./wait.ts";

const beyondLoopback = ["0.0.0.0", "::", "192.0.2.1"];

/** S12: what somebody gets who starts Drover for the first time and sets nothing. */
export async function freshStarts({ starts }: { starts: number }, tools: Tools): Promise<Finding> {
  const broken: string[] = [];
  const tokens = new Set<string>();
  let refusals = 0;
  for (const at of upTo(starts)) {
    await inPlace(tools, null, async (place) => {
      broken.push(...(await faultsOf(place)));
      tokens.add(place.token);
      if (at === 0) refusals = await refusesOpenDoors(place, tools, broken);
    });
  }
  if (tokens.size !== starts) broken.push(`${starts} starts had ${tokens.size} different tokens`);
  return { seen: { starts, "different tokens": tokens.size, "open doors refused": refusals }, broken, late: [] };
}

async function faultsOf({ url, state, token }: Place): Promise<string[]> {
  const faults: string[] = [];
  const { hostname, port } = new URL(url);
  if (hostname !== "127.0.0.1") faults.push(`it says it listens on ${hostname}`);
  const heard = listeners(port);
  if (heard.join() !== "0100007F") faults.push(`it listens on ${heard.join()}`);
  for (const [file, most] of [
    ["token", 0o600],
    ["audit.key", 0o600],
    [".", 0o700],
  ] as const) {
    const mode = statSync(join(state, file)).mode & 0o777;
    if ((mode & ~most) !== 0) faults.push(`${file} has mode ${mode.toString(8)}`);
  }
  // 22 characters of 62 are 130 bits
  if (!/^drv_[0-9A-Za-z]{22,}$/.test(token)) faults.push("the token is too short");
  for (const path of ["/runs", "/agents", "/runners", "/events", "/metrics", "/tokens", "/sessions", "/executions"]) {
    const { status } = await rawCall(url, { path });
    if (status !== 401) faults.push(`${path} answers ${status} without a token`);
  }
  return faults;
}

async function refusesOpenDoors({ directory, processes }: Place, { root }: Tools, broken: string[]): Promise<number> {
  let refusals = 0;
  for (const host of beyondLoopback) {
    const child = processes.start(
      [process.execPath, join(root, "bin", "drover.js"), "coordinator", "--host", host, "--port", "0"],
      {
        cwd: directory,
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: directory,
          DROVER_STATE_DIR: join(directory, "open"),
          AUTH_ENABLED: "false",
        },
      },
    );
    const ended = await waitFor(async () => (child.alive ? null : true), 20_000);
    if (ended && child.said.includes("DROVER-API-025")) refusals += 1;
    else broken.push(`without auth on ${host}: ${child.said.slice(0, 300)}`);
  }
  return refusals;
}

/** The addresses on which this host has somebody listen at a port, as the kernel writes them. */
function listeners(port: string): string[] {
  const hex = Number(port).toString(16).toUpperCase().padStart(4, "0");
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = "", , state]) =>
        state === "0A" && local.endsWith(`:${hex}`) ? [local.split(":")[0]!] : [],
      ),
  );
}
