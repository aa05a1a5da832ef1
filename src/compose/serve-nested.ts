import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { HostError } from "../model/errors.ts";
import type { NestedServer } from "./nested-socket.ts";
import type { OpenCoordinator } from "./open-coordinator.ts";
import { createApp } from "../serve/app.ts";
import type { AttemptTokens } from "../serve/attempt-token.ts";
import type { ServeDeps } from "../serve/deps.ts";
import { createProver } from "../serve/prover.ts";
import { routes } from "../serve/routes.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

/**
 * Serves the API to commands inside runs of this process. Only attempt tokens are accepted, and only the routes that they
 * may use are served. `origin` is the socket that commands connect to. `execRun` is a run with an unsigned token.
 */
export function serveNested(
  coordinator: OpenCoordinator,
  origin: string,
  execRun?: { run_id: string; key: string },
): NestedServer {
  const { deps, store } = coordinator;
  const attemptTokens = execRun ? addExecRun(deps.attemptTokens, execRun) : deps.attemptTokens;
  const app = createApp(
    {
      ...deps,
      store: { ...store, read: { ...store.read, token: async () => null } },
      attemptTokens,
      prove: createProver({
        read: { token_hash: async () => null },
        attemptTokens,
        publicUrls: [],
        sockets: new Set([origin]),
      }),
      ...withoutSystem,
      authEnabled: true,
      publicUrls: [],
      cookieName: "drover_nested",
      webDirectory: null,
      version: DROVER_VERSION,
      engine: store.engine.kind,
      startedAt: deps.now(),
    },
    routes.filter(({ name, rule }) => name === "POST /proof" || ("roles" in rule && rule.attempt === true)),
  );
  const handle = getRequestListener(app.fetch);
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));
  return {
    accept(socket) {
      server.emit("connection", socket);
      socket.resume();
    },
    async stop() {
      server.closeAllConnections();
    },
  };
}

function addExecRun({ sign, verify }: AttemptTokens, { run_id, key }: { run_id: string; key: string }): AttemptTokens {
  return {
    sign: (id, attempt) => (key.startsWith(`drva_${id}.${attempt}.`) ? key : sign(id, attempt)),
    verify: (token) => (token === key ? { run_id, attempt: 1 } : verify(token)),
  };
}

const reject = (): never => {
  throw new HostError({ code: "DROVER-API-023", message: "Commands inside a run cannot use this route." });
};

/** Stand-ins for dependencies that no route served here needs. */
const withoutSystem: Pick<ServeDeps, "metrics" | "backup" | "audit"> = {
  metrics: { observeRequest: () => undefined, render: reject },
  backup: reject,
  audit: { state: reject, verify: reject },
};
