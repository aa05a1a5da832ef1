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
 * The API for commands inside runs of this process: the routes that the token of an attempt opens, and no other token.
 * `origin` is the socket that they connect to, `own` a run without a signed token, and the one that stands for it.
 */
export function serveNested(
  coordinator: OpenCoordinator,
  origin: string,
  own?: { run_id: string; key: string },
): NestedServer {
  const { deps, store } = coordinator;
  const attemptTokens = own ? withOwn(deps.attemptTokens, own) : deps.attemptTokens;
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
    },
    routes.filter(({ name, rule }) => name === "POST /proof" || ("roles" in rule && rule.attempt === true)),
  );
  const answer = getRequestListener(app.fetch);
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
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

function withOwn({ sign, read }: AttemptTokens, { run_id, key }: { run_id: string; key: string }): AttemptTokens {
  return {
    sign: (id, attempt) => (key.startsWith(`drva_${id}.${attempt}.`) ? key : sign(id, attempt)),
    read: (token) => (token === key ? { run_id, attempt: 1 } : read(token)),
  };
}

const none = (): never => {
  throw new HostError({ code: "DROVER-API-023", message: "Commands inside a run cannot ask for this." });
};

/** No route that is served needs it. */
const withoutSystem: Pick<ServeDeps, "metrics" | "backup" | "audit"> = {
  metrics: { seeRequest: () => undefined, write: none },
  backup: none,
  audit: { state: none, verify: none },
};
