import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reservePort } from "../test/reserve-port.ts";
import { hashToken } from "../src/wire/proof.ts";
import type { Finding, Tools } from "./finding.ts";
import { answering } from "./coordinators.ts";
import { inPlace, type Place } from "./place.ts";
import { strangerKinds, strangerScript } from "./stranger-script.ts";
import { retryWhileUnreachable, waitFor } from "./wait.ts";

type Kind = (typeof strangerKinds)[number];

interface Heard {
  bytes: string;
  /** The result of a command issued meanwhile. */
  command: string;
}

/**
 * H5: a coordinator dies and another program takes over its port. Its runner and a command send that program nothing but
 * a nonce, accept nothing from it, and return once the coordinator is back.
 */
export async function strangers({ rounds }: { rounds: number }, tools: Tools): Promise<Finding> {
  return inPlace(tools, { leaseMs: 4000, pollHoldMs: 2000 }, async (place) => {
    await place.putAgent("work");
    const times = { heartbeatMs: 200, pollPauseMs: 50 };
    const { child: runner } = await place.startRunner({ name: "steady", slots: 2, times });
    const script = join(place.directory, "stranger.cjs");
    writeFileSync(script, strangerScript);
    // It knows the token too, so a stranger could try to relay proofs from it.
    const realPort = await startSecond(place, tools);
    const broken: string[] = [];
    let asked = 0;
    let returned = 0;
    for (let round = 0; round < rounds; round += 1) {
      const kind = strangerKinds[round % strangerKinds.length]!;
      const heard = await takeOver(place, script, kind, realPort, join(place.directory, `heard-${round}`));
      asked += heard.bytes.match(/POST \/proof /g)?.length ?? 0;
      broken.push(...faultsOf(place, kind, heard));
      await place.coordinators[0]!.start();
      if (await works(place)) returned += 1;
      else broken.push(`${kind}: the runner did not return: ${runner.said.slice(-500)}`);
      if (!runner.alive) broken.push(`${kind}: the runner ended: ${runner.said.slice(-500)}`);
    }
    return { seen: { strangers: rounds, "asked for proof": asked, returned, broken: broken.length }, broken, late: [] };
  });
}

async function startSecond(place: Place, { host }: Tools): Promise<number> {
  const port = await reservePort();
  const options = { stateDirectory: place.state, port, leaseMs: 3_600_000, rescueEveryMs: 3_600_000 };
  const child = place.processes.start([process.execPath, host, "coordinator", JSON.stringify(options)], {
    cwd: place.directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: place.directory },
  });
  await answering(`http://127.0.0.1:${port}`, child);
  return port;
}

/** The stranger keeps the port until both the runner and a command have contacted it. */
async function takeOver(place: Place, script: string, kind: Kind, realPort: number, log: string): Promise<Heard> {
  const slot = place.coordinators[0]!;
  slot.child.signal("SIGKILL");
  await slot.child.closed;
  const { port } = new URL(slot.url);
  const stranger = place.processes.start([process.execPath, script, port, kind, log, String(realPort)], {
    cwd: place.directory,
    env: {},
  });
  await stranger.says(/listening/, 60_000);
  const read = (): string => (existsSync(log) ? readFileSync(log, "latin1") : "");
  // A poll and a report, each more than once.
  await waitFor(async () => ((read().match(/POST \/proof /g)?.length ?? 0) >= 4 ? true : null), 60_000, 20);
  const command = await place.client.submit({ agent_name: "work", parameters: { secret: "parameter" } }).then(
    () => "accepted",
    (error: unknown) => String(Reflect.get(error as object, "code")),
  );
  stranger.signal("SIGKILL");
  await stranger.closed;
  return { bytes: read(), command };
}

function faultsOf({ directory, token }: Place, kind: Kind, { bytes, command }: Heard): string[] {
  const told = [token, hashToken(token).slice(0, 17), "uthorization", "parameter", "/runner/", "runner_key"];
  const faults = told.filter((secret) => bytes.includes(secret)).map((secret) => `${kind} was told ${secret}`);
  if (!bytes.includes("POST /proof ")) faults.push(`${kind} was never asked: nothing was tried`);
  if (!["DROVER-API-023", "DROVER-API-034"].includes(command))
    faults.push(`${kind}: a command was answered ${command}`);
  if (existsSync(join(directory, "stolen"))) faults.push(`${kind}: its command was run`);
  return faults;
}

async function works({ client }: Place): Promise<boolean> {
  const { run_id } = await retryWhileUnreachable(() => client.submit({ agent_name: "work", parameters: { lines: 1 } }));
  const done = await waitFor(
    async () => ((await retryWhileUnreachable(() => client.runs.get(run_id))).status === "completed" ? true : null),
    120_000,
    50,
  );
  return done === true;
}
