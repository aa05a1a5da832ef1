import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { recordDirectory, tokenFile } from "../src/model/state-layout.ts";
import { rawCall } from "../test/http-call.ts";
import type { CoordinatorSlot } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { countUpTo, waitFor } from "./wait.ts";

const publicHosts = ["0.0.0.0", "::", "192.0.2.1"];

/** S12: Drover is secure on a first start without any configuration. */
export async function freshStarts({ starts }: { starts: number }, tools: Tools): Promise<Finding> {
  const broken: string[] = [];
  const tokens = new Set<string>();
  let refusals = 0;
  for (const index of countUpTo(starts)) {
    await withTestbed(tools, null, async (testbed) => {
      for (const slot of testbed.coordinators) broken.push(...(await checkFirstStart(slot, testbed)));
      tokens.add(testbed.token);
      if (index === 0) refusals = await checkRefusals(testbed, tools, broken);
    });
  }
  if (tokens.size !== starts) broken.push(`${starts} starts had ${tokens.size} different tokens`);
  return { seen: { starts, "different tokens": tokens.size, "open doors refused": refusals }, broken, late: [] };
}

async function checkFirstStart({ url, state }: CoordinatorSlot, { token, fleet }: Testbed): Promise<string[]> {
  const faults: string[] = [];
  const { hostname, port } = new URL(url);
  if (hostname !== "127.0.0.1") faults.push(`it says it listens on ${hostname}`);
  const listening = listListeners(port);
  if (listening.join() !== "0100007F") faults.push(`it listens on ${listening.join()}`);
  const own = fleet ? (["fleet-token"] as const) : (["token", "audit.key"] as const);
  const files = [...own.map((name) => [name, 0o600] as const), [".", 0o700]] as const;
  for (const [file, max] of files) {
    const mode = statSync(join(recordDirectory(state), file)).mode & 0o777;
    if ((mode & ~max) !== 0) faults.push(`${file} has mode ${mode.toString(8)}`);
  }
  if (fleet) faults.push(...checkFleetFiles(state, token));
  // 22 characters of an alphabet of 62 are 130 bits.
  if (!/^drv_[0-9A-Za-z]{22,}$/.test(token)) faults.push("the token is too short");
  for (const path of ["/runs", "/agents", "/runners", "/events", "/metrics", "/tokens", "/sessions", "/executions"]) {
    const { status } = await rawCall(url, { path });
    if (status !== 401) faults.push(`${path} answers ${status} without a token`);
  }
  return faults;
}

/** A fleet's coordinator stores only its address and token for local commands, no shared secrets. */
function checkFleetFiles(state: string, token: string): string[] {
  const record = recordDirectory(state);
  const kept = readdirSync(record).filter((name) => !["fleet-token", "coordinator.json", "sock"].includes(name));
  const own = readFileSync(tokenFile(record, "fleet-token"), "utf8").trim();
  return [
    ...(kept.length === 0 ? [] : [`a coordinator of a fleet keeps ${kept.join(", ")}`]),
    ...(own === token ? [] : ["two coordinators have two admin tokens"]),
  ];
}

async function checkRefusals(testbed: Testbed, { root }: Tools, broken: string[]): Promise<number> {
  const { directory, processes, fleet } = testbed;
  let refusals = 0;
  const refuses = async (what: string, code: string, host: string, extraEnv: Record<string, string>): Promise<void> => {
    const child = processes.start(
      [process.execPath, join(root, "bin", "drover.js"), "coordinator", "--host", host, "--port", "0"],
      {
        cwd: directory,
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: directory,
          DROVER_STATE_DIR: join(directory, "open"),
          ...extraEnv,
        },
      },
    );
    const ended = await waitFor(async () => (child.alive ? null : true), 20_000);
    if (ended && child.output.includes(code)) refusals += 1;
    else broken.push(`${what}: ${child.output.slice(0, 300)}`);
  };
  const database = fleet ? { DATABASE_URL: fleet.url, DROVER_SECRET: fleet.secret.toString("hex") } : {};
  for (const host of publicHosts)
    await refuses(`without auth on ${host}`, "DROVER-API-025", host, { ...database, AUTH_ENABLED: "false" });
  // With a missing or guessable secret, anyone who reads the database could sign for the fleet.
  for (const secret of fleet ? ["", "secret", "0".repeat(63)] : [])
    await refuses(`with the secret "${secret}"`, "DROVER-CFG-001", "127.0.0.1", { ...database, DROVER_SECRET: secret });
  return refusals;
}

/** The addresses with a listener on this port, in the kernel's notation. */
function listListeners(port: string): string[] {
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
