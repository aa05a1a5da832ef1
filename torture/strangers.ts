import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reservePort } from "../test/reserve-port.ts";
import { hashToken } from "../src/wire/proof.ts";
import type { Finding, Tools } from "./finding.ts";
import { waitUntilAnswering } from "./coordinators.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { strangerKinds, strangerScript } from "./stranger-script.ts";
import { retryWhileUnreachable, waitFor } from "./wait.ts";

type Kind = (typeof strangerKinds)[number];

interface Contact {
  bytes: string;
  /** The result of a command issued meanwhile. */
  command: string;
}

/**
 * H5: a coordinator dies and another program takes over its port. Its runner and a command send that program nothing but
 * a nonce, accept nothing from it, and return once the coordinator is back.
 */
export async function strangers({ rounds }: { rounds: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 4000, pollHoldMs: 2000 }, async (testbed) => {
    await testbed.putAgent("work");
    const times = { heartbeatMs: 200, pollPauseMs: 50 };
    const { child: runner } = await testbed.startRunner({ name: "steady", slots: 2, times });
    const script = join(testbed.directory, "stranger.cjs");
    writeFileSync(script, strangerScript);
    // It knows the token too, so a stranger could try to relay proofs from it.
    const realPort = await startSecond(testbed, tools);
    const broken: string[] = [];
    let proofRequests = 0;
    let returned = 0;
    for (let round = 0; round < rounds; round += 1) {
      const kind = strangerKinds[round % strangerKinds.length]!;
      const contact = await takeOver(testbed, script, kind, realPort, join(testbed.directory, `heard-${round}`));
      proofRequests += contact.bytes.match(/POST \/proof /g)?.length ?? 0;
      broken.push(...findFaults(testbed, kind, contact));
      await testbed.coordinators[0]!.start();
      if (await checkWorks(testbed)) returned += 1;
      else broken.push(`${kind}: the runner did not return: ${runner.output.slice(-500)}`);
      if (!runner.alive) broken.push(`${kind}: the runner ended: ${runner.output.slice(-500)}`);
    }
    return {
      seen: { strangers: rounds, "asked for proof": proofRequests, returned, broken: broken.length },
      broken,
      late: [],
    };
  });
}

async function startSecond(testbed: Testbed, { host }: Tools): Promise<number> {
  const port = await reservePort();
  const options = { stateDirectory: testbed.state, port, leaseMs: 3_600_000, rescueEveryMs: 3_600_000 };
  const child = testbed.processes.start([process.execPath, host, "coordinator", JSON.stringify(options)], {
    cwd: testbed.directory,
    env: { PATH: process.env["PATH"] ?? "", HOME: testbed.directory },
  });
  await waitUntilAnswering(`http://127.0.0.1:${port}`, child);
  return port;
}

/** The stranger keeps the port until both the runner and a command have contacted it. */
async function takeOver(testbed: Testbed, script: string, kind: Kind, realPort: number, log: string): Promise<Contact> {
  const slot = testbed.coordinators[0]!;
  slot.child.signal("SIGKILL");
  await slot.child.closed;
  const { port } = new URL(slot.url);
  const stranger = testbed.processes.start([process.execPath, script, port, kind, log, String(realPort)], {
    cwd: testbed.directory,
    env: {},
  });
  await stranger.waitForOutput(/listening/, 60_000);
  const read = (): string => (existsSync(log) ? readFileSync(log, "latin1") : "");
  // A poll and a report, each more than once.
  await waitFor(async () => ((read().match(/POST \/proof /g)?.length ?? 0) >= 4 ? true : null), 60_000, 20);
  const command = await testbed.client.submit({ agent_name: "work", parameters: { secret: "parameter" } }).then(
    () => "accepted",
    (error: unknown) => String(Reflect.get(error as object, "code")),
  );
  stranger.signal("SIGKILL");
  await stranger.closed;
  return { bytes: read(), command };
}

function findFaults({ directory, token }: Testbed, kind: Kind, { bytes, command }: Contact): string[] {
  const forbidden = [token, hashToken(token).slice(0, 17), "uthorization", "parameter", "/runner/", "runner_key"];
  const faults = forbidden.filter((secret) => bytes.includes(secret)).map((secret) => `${kind} received ${secret}`);
  if (!bytes.includes("POST /proof ")) faults.push(`${kind} was never asked: nothing was tried`);
  if (!["DROVER-API-023", "DROVER-API-034"].includes(command))
    faults.push(`${kind}: a command was answered ${command}`);
  if (existsSync(join(directory, "stolen"))) faults.push(`${kind}: its command was run`);
  return faults;
}

async function checkWorks({ client }: Testbed): Promise<boolean> {
  const { run_id } = await retryWhileUnreachable(() => client.submit({ agent_name: "work", parameters: { lines: 1 } }));
  const done = await waitFor(
    async () => ((await retryWhileUnreachable(() => client.runs.get(run_id))).status === "completed" ? true : null),
    120_000,
    50,
  );
  return done === true;
}
