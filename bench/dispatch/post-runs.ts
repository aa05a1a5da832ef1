import { randomFillSync } from "node:crypto";
import { openSchemaChecker } from "../../src/define/json-schema/checker.ts";
import { createIds } from "../../src/model/ids.ts";
import type { Store } from "../../src/model/store.ts";
import type { Token } from "../../src/model/token.ts";
import { createApp } from "../../src/serve/app.ts";
import { createLargeBodies } from "../../src/serve/bodies/large-bodies.ts";
import { createHeavyTurns } from "../../src/serve/heavy-turns.ts";
import { createAttemptTokens } from "../../src/serve/attempt-token.ts";
import { listen } from "../../src/serve/listen.ts";
import { createRegistry } from "../../src/show/metrics/registry.ts";
import { watchRequests } from "../../src/show/metrics/requests.ts";
import { hashToken } from "../../src/serve/token-text.ts";
import { createFeedHub } from "../../src/show/feed-hub.ts";
import { submitRun } from "../../src/submit/submit.ts";
import { printTable, computeRatio, formatTimes } from "../rounds.ts";
import { announce, startRole } from "./children.ts";
import { type HttpConnection, openHttp } from "./connection.ts";
import { startCoordinator } from "./drover.ts";
import { addSample, formatRate, type Rounds, formatSpread } from "./figures.ts";
import { noopAgent } from "./noop-run.ts";

const connections = 128;

/** Compares the application with and without its record, to show what durability costs. */
export async function measurePostRuns(
  root: string,
  directory: string,
  rounds: number,
  requests: number,
): Promise<void> {
  const withoutDatabase = await startRole("no-database", {});
  const [url = "", token = ""] = withoutDatabase.ready.split(" ");
  const servers = [
    { name: "durable", ...(await startCoordinator(root, directory, "post")) },
    { name: "bare", url, token, stop: withoutDatabase.stop },
  ];
  const result: Rounds = new Map();
  const clients = await Promise.all(
    servers.map(async (server) => ({
      name: server.name,
      sockets: await Promise.all(Array.from({ length: connections }, () => openHttp(server.url, server.token))),
    })),
  );
  for (const { sockets } of clients) await postAll(sockets, requests / 2);
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < clients.length; index++) {
      const { name, sockets } = clients[(index + round) % clients.length]!;
      addSample(result, name, await postAll(sockets, requests));
    }
  }
  for (const { sockets } of clients) for (const socket of sockets) socket.close();
  for (const { stop } of servers) await stop();
  printTable(
    `POST /runs, ${connections} connections, ${requests} requests a round`,
    ["what", "median (spread)", "against no database", "goal"],
    [
      [
        "durable",
        formatSpread(result.get("durable")!, formatRate),
        formatTimes(computeRatio(result, "durable", "bare")),
        ">= 0.6x",
      ],
      ["the same application without a database", formatSpread(result.get("bare")!, formatRate), "", ""],
    ],
  );
}

/** Returns responses per second. */
async function postAll(sockets: readonly HttpConnection[], requests: number): Promise<number> {
  const body = JSON.stringify({ agent_name: "noop", parameters: { id: "some", message: "Hello World" } });
  let remaining = requests;
  const startedAt = performance.now();
  await Promise.all(
    sockets.map(async (socket) => {
      while (remaining-- > 0) {
        const { status } = await socket.request("POST", "/runs", body);
        if (status !== 201) throw new Error(`POST /runs: ${status}`);
      }
    }),
  );
  return requests / ((performance.now() - startedAt) / 1000);
}

/** Serves POST /runs without a record: it knows one token and discards the runs. */
export async function noDatabaseRole(): Promise<void> {
  const token = "drv_0123456789abcdef0123456789abcdef";
  const knownTokens = new Map([[hashToken(token), adminToken]]);
  const newId = createIds(Date.now, (bytes) => void randomFillSync(bytes));
  const now = (): Date => new Date();
  const noop = noopAgent;
  const agents = {
    page: async () => ({ items: [], next: null }),
    names: async () => [],
    find: async () => ({ agent: noop, source: "file" as const, runner_id: null, owner: null }),
    put: async () => undefined,
    remove: async () => false,
  };
  // Contains only what POST /runs calls.
  const store = {
    apply: async (ops: readonly unknown[]) => ops.map(() => ({ ok: true, last_n: 0 })),
    read: { token: async (hash: string) => knownTokens.get(hash) ?? null, run: async () => null },
  } as unknown as Pick<Store, "apply" | "blobs" | "read">;
  const createRun = async () => ({ ok: true as const, last_n: 0 });
  const schemas = openSchemaChecker();
  const registry = createRegistry((fault) => process.stderr.write(`${String(fault)}\n`));
  const app = createApp({
    store,
    submit: (request, caller) => submitRun(request, caller, { store, createRun, agents, schemas, now, newId }),
    submitMany: () => Promise.reject(new Error("this bench submits one run at a time")),
    pauseAfterWork: () => async () => undefined,
    dispatcher: null as never, // Not used by POST /runs, like schedules and triggers.
    schedules: null as never,
    heavyTurns: createHeavyTurns(),
    largeBodies: createLargeBodies(() => Promise.reject(new Error("this bench sends small bodies only"))),
    triggers: null as never,
    agents,
    checkAgent: async () => ({ ok: true, agent: noop }),
    checkInput: async () => [],
    attemptTokens: createAttemptTokens(Buffer.alloc(32), null),
    hub: createFeedHub({ onError: () => undefined }),
    owners: async () => null,
    metrics: { observeRequest: watchRequests(registry), render: registry.render },
    findRecordError: async () => null,
    audit: null as never, // Unused.
    prove: null as never,
    backup: () => Promise.reject(new Error("nothing to back up")),
    now,
    newId,
    authEnabled: true,
    publicUrls: [],
    cookieName: "drover",
    webDirectory: null,
    version: "0",
    engine: "sqlite",
    startedAt: new Date(),
    onDefect: (error) => process.stderr.write(`${String(error)}\n`),
  });
  const { url } = await listen(app, { host: "127.0.0.1", port: 0, authEnabled: true });
  announce(`${url} ${token}`);
}

const adminToken: Token = {
  token_id: "t",
  kind: "access",
  role: "admin",
  subject: "admin",
  label: null,
  created_by: "admin",
  created_at: new Date().toISOString(),
  expires_at: null,
  revoked_at: null,
  used_at: null,
};
