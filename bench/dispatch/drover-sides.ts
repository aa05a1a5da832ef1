import { createLocalIds } from "../../src/local.ts";
import type { CreateRun, Store } from "../../src/model/store.ts";
import { openHttp } from "./connection.ts";
import { type Drover, waitForAllEnded } from "./drover.ts";
import { createNoopRun } from "./noop-run.ts";
import { readCpuMs } from "./processes.ts";
import { type Caller, type Intake, payload, createSharedCallers, type Side } from "./side.ts";

/** Submits over HTTP with a connection per caller, including auth and validation. */
export function createDroverIntake(
  { url, token }: Pick<Drover, "url" | "token">,
  durability: string,
  close: () => Promise<void>,
): Intake {
  return {
    name: "drover",
    label: "Drover over HTTP",
    durability,
    callers: (count) => Promise.all(Array.from({ length: count }, () => openCaller(url, token))),
    batch: (runs) => postBatches(url, token, runs),
    close,
  };
}

export function createDroverSide(drover: Drover, durability: string, serverCpuMs: () => number = () => 0): Side {
  const { client, coordinatorPid, runnerPid } = drover;
  const drain = async (on: boolean): Promise<void> => {
    const { items } = await client.runners.list();
    const runner = items.find(({ executor_profile }) => executor_profile === "noop");
    await client.runners.drain(runner!.runner_id, on);
  };
  return {
    ...createDroverIntake(drover, durability, drover.stop),
    label: "Drover",
    pause: () => drain(true),
    resume: () => drain(false),
    allEnded: () => waitForAllEnded(drover),
    cpuMs: () => readCpuMs([coordinatorPid, runnerPid]) + serverCpuMs(),
  };
}

/** Writes to the store in this process, as POST /runs does after validation. */
export function createStoreIntake(store: Store, durability: string): Intake {
  const newId = createLocalIds();
  const create = async (operations: CreateRun[]): Promise<void> => {
    const results = await store.apply(operations);
    if (results.some(({ ok }) => !ok)) throw new Error("a run was refused");
  };
  return {
    name: "store",
    label: "Drover's store",
    durability,
    callers: createSharedCallers((id) => create([createNoopRun(newId, id)])),
    batch: (runs) => create(Array.from({ length: runs }, (_, index) => createNoopRun(newId, `b${index}`))),
    close: () => store.close(),
  };
}

/** The most runs that one request may have. */
const maxBatch = 1000;

async function postBatches(url: string, token: string, runs: number): Promise<void> {
  const http = await openHttp(url, token);
  for (let sent = 0; sent < runs; sent += maxBatch) {
    const items = Array.from({ length: Math.min(maxBatch, runs - sent) }, (_, index) => ({
      agent_name: "noop",
      parameters: payload(`b${sent + index}`),
    }));
    const { status, body } = await http.request("POST", "/runs/batch", JSON.stringify({ runs: items }));
    if (status !== 200 || body.includes('{"problem":')) throw new Error(`POST /runs/batch: ${status}`);
  }
  http.close();
}

async function openCaller(url: string, token: string): Promise<Caller> {
  const http = await openHttp(url, token);
  return {
    async submit(id) {
      const body = JSON.stringify({ agent_name: "noop", parameters: payload(id) });
      const { status } = await http.request("POST", "/runs", body);
      if (status !== 201) throw new Error(`POST /runs: ${status}`);
    },
    end: http.close,
  };
}
