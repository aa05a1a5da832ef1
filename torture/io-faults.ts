import { spawnSync } from "node:child_process";
import { cpSync, lstatSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { HostError } from "../src/model/errors.ts";
import { openConnection } from "../src/record/sqlite/open-connection.ts";
import { databaseFile, recordDirectory } from "../src/model/state-layout.ts";
import { createSmallDiskPrefix } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { testOutage, type Size, type Trouble as IoFault } from "./outage.ts";
import { withServer } from "./own-server.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllRuns, readAudit } from "./record.ts";
import { fillUp, withSmallServer } from "./small-server.ts";
import { retryWhileUnreachable, pause, waitFor } from "./wait.ts";

/**
 * R9: the disk is full, or the database read-only or locked, while runs are active and others are submitted. Acknowledged
 * runs are stored, the others are refused with the right code, and afterwards nothing is missing or damaged.
 */
export async function ioFaults(size: Size & { only?: string }, tools: Tools): Promise<Finding> {
  const all: Finding = { seen: {}, broken: [], late: [] };
  for (const [name, bringAbout] of Object.entries(tools.engine === "sqlite" ? onSqlite : onPostgres)) {
    if (size.only !== undefined && size.only !== name) continue;
    const found = await bringAbout(size, tools);
    if (found === null) tools.progress(`${name}: not on this host`);
    all.seen[`${name}, runs lost`] = found?.seen["runs lost"] ?? -1;
    all.seen[`${name}, refused`] = found?.seen["refused"] ?? -1;
    all.broken.push(...(found?.broken ?? []).map((fault) => `${name}: ${fault}`));
  }
  return all;
}

/** Resolves to null if this host cannot produce the fault. */
type Meet = (size: Size, tools: Tools) => Promise<Finding | null>;

const onSqlite: Record<string, Meet> = {
  "disk full": async (size, tools) =>
    hasSmallDisks()
      ? testIoFault(size, tools, fillDisk, (work) => withTestbed(tools, null, work, { smallDisk: "200m" }))
      : null,
  locked: (size, tools) => testIoFault(size, tools, lockFile, (work) => withTestbed(tools, null, work)),
};

const onPostgres: Record<string, Meet> = {
  "disk full": async (size, tools) =>
    process.getuid?.() === 0
      ? withSmallServer(tools, (own, server) =>
          testIoFault(size, tools, server.fill, (work) => withTestbed(own, null, work)),
        )
      : null,
  "read-only": (size, tools) =>
    withServer(tools, (own) => testIoFault(size, tools, readOnly, (work) => withTestbed(own, null, work))),
  locked: (size, tools) => testIoFault(size, tools, lockTable, (work) => withTestbed(tools, null, work)),
};

function hasSmallDisks(): boolean {
  const [file = "", ...args] = createSmallDiskPrefix("/tmp", "1m");
  return spawnSync(file, [...args, "true"]).status === 0;
}

type In = (work: (testbed: Testbed) => Promise<Finding>) => Promise<Finding>;

async function testIoFault(size: Size, tools: Tools, trouble: IoFault, within: In): Promise<Finding> {
  return within(async (testbed) => {
    const submitting = startSubmitting(testbed);
    const finding = await testOutage(testbed, size, tools, async () => {
      const end = await trouble(testbed);
      submitting.begin();
      return async () => {
        // On a busy machine the first refusal may come after the planned duration.
        await waitFor(async () => (submitting.refused.length > 0 ? true : null), 60_000);
        submitting.end();
        await end();
        await submitting.again();
      };
    });
    const stored = await readAllRuns(testbed.client);
    const lost = [...submitting.acknowledged].filter(([, run_id]) => !stored.some((run) => run.run_id === run_id));
    const { verified } = await readAudit({ fleet: testbed.fleet, state: copyReachableState(testbed) });
    const all = size.runs + submitting.requestCount;
    return {
      ...finding,
      seen: { ...finding.seen, refused: submitting.refused.length },
      broken: [
        ...finding.broken,
        ...lost.map(([key]) => `${key} was acknowledged and is not there`),
        ...(stored.length === all ? [] : [`${stored.length} runs where ${all} were asked for`]),
        ...submitting.wrong,
        ...(verified ? [] : ["the audit chain does not verify"]),
      ],
    };
  });
}

/** SQLite cannot open files on another process's private disk, so they are copied first. Nothing writes to it any more. */
function copyReachableState({ state, directory }: Testbed): string {
  if (!state.startsWith("/proc/")) return state;
  const copy = join(directory, "copied-state");
  cpSync(state, copy, { recursive: true, filter: (path) => !lstatSync(path).isSocket() });
  return copy;
}

/** Submits runs continuously. Afterwards resubmits each refused one with the same idempotency key. */
function startSubmitting({ client }: Testbed) {
  const acknowledged = new Map<string, string>();
  const refused: string[] = [];
  const wrong: string[] = [];
  let isRunning = false;
  let requested = 0;
  let loop: Promise<void> = Promise.resolve();
  const ask = (key: string) => client.submit({ agent_name: "work", idempotency_key: key });
  const run = async (): Promise<void> => {
    for (; isRunning; await pause(100)) {
      const key = `asked ${(requested += 1)}`;
      await ask(key).then(
        ({ run_id }) => acknowledged.set(key, run_id),
        (error: unknown) => {
          refused.push(key);
          // Any other code means a defect.
          if (!(error instanceof HostError) || !/^DROVER-(STA-00[238]|API-023)$/.test(error.code))
            wrong.push(`${key} was refused otherwise: ${String(error)}`);
        },
      );
    }
  };
  return {
    acknowledged,
    refused,
    wrong,
    get requestCount() {
      return requested;
    },
    begin() {
      isRunning = true;
      loop = run();
    },
    end() {
      isRunning = false;
    },
    async again() {
      await loop;
      for (const key of refused) acknowledged.set(key, (await retryWhileUnreachable(() => ask(key))).run_id);
    },
  };
}

const fillDisk: IoFault = async (testbed) => {
  const filler = join(testbed.state, "filler");
  fillUp(filler);
  return async () => rmSync(filler);
};

const lockFile: IoFault = async ({ state }) => {
  const connection = await openConnection(databaseFile(recordDirectory(state)), "write", 5000);
  connection.exec("begin immediate");
  return async () => {
    connection.exec("rollback");
    connection.close();
  };
};

const lockTable: IoFault = async ({ fleet }) => {
  const client = await connect(fleet!.url);
  await client.query("begin; lock table drover.store in access exclusive mode");
  return async () => {
    await client.query("rollback");
    await client.end();
  };
};

/** Like a failover to a server that is not yet the primary. */
const readOnly: IoFault = async ({ fleet }) => {
  const set = async (value: "on" | "off"): Promise<void> => {
    const client = await connect(fleet!.url);
    await client.query(`alter system set default_transaction_read_only = ${value}`);
    await client.query("select pg_reload_conf()");
    await client.end();
  };
  await set("on");
  return () => set("off");
};

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: "-c default_transaction_read_only=off" });
  await client.connect();
  return client;
}
