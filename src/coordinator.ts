import { openAudit } from "./compose/open-audit.ts";
import { openBackups } from "./compose/open-backups.ts";
import { type CoordinatorMetrics, openMetrics } from "./compose/open-metrics.ts";
import { recordDirectory } from "./model/state-layout.ts";
import { openCoordinator, type OpenCoordinator, type OpenOptions, stopAll } from "./compose/open-coordinator.ts";
import { createApp } from "./serve/app.ts";
import { ensureFleetAdminToken } from "./serve/fleet-admin-token.ts";
import type { RequestLimits } from "./serve/request-limiter.ts";
import { createEphemeralTokens } from "./serve/ephemeral-tokens.ts";
import { listen, refuseOpenWithoutAuth, checkPublicUrls } from "./serve/listen.ts";
import { findWebDirectory } from "./define/package-directory.ts";
import { runTriggers, type TriggerOptions } from "./trigger/run-triggers.ts";
import { createProver } from "./serve/prover.ts";
import { ensureAdminToken } from "./serve/token-file.ts";
import { hashToken } from "./serve/token-text.ts";
import { readSocketOrigin } from "./wire/socket-origin.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

export interface CoordinatorOptions extends OpenOptions {
  host?: string;
  /** The port to listen on. 0 selects a free one. */
  port?: number;
  /** The path of a Unix socket to listen on in addition to the port. */
  socket?: string | null;
  authEnabled?: boolean;
  publicUrls?: readonly string[];
  /** How often an open poll sends a keepalive. */
  keepaliveMs?: number;
  /** Limits on the concurrent requests of one caller. */
  requestLimits?: RequestLimits;
  /** How long a client may leave a response unread before it is disconnected. */
  stalledMs?: number;
  version?: string;
  /** Timing of webhook deliveries. */
  deliveries?: Pick<TriggerOptions, "everyMs" | "leaseMs" | "retryMs" | "timeoutMs" | "resolve">;
  /** The directory of the built dashboard. Default: the package's own. */
  webDirectory?: string | null;
}

export interface Coordinator extends Omit<OpenCoordinator, "stop"> {
  url: string;
  /** The socket for programs of the same user on this machine, which need no proof. null if there is none. */
  socket: string | null;
  /** Whether the dashboard is served at /ui/. */
  hasWeb: boolean;
  adminToken: string;
  /** Issues a token for a runner that this process starts. It is valid only here and until the coordinator stops. */
  issueRunnerToken(): Promise<string>;
  /** Rejects new requests, ends all streams and open polls, and closes the record. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a coordinator that serves HTTP. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const directory = recordDirectory(options.stateDirectory);
  const { host = "127.0.0.1", port = 8765, authEnabled = true, publicUrls = [] } = options;
  const {
    database,
    version = DROVER_VERSION,
    keepaliveMs,
    requestLimits,
    stalledMs,
    webDirectory = findWebDirectory(),
  } = options;
  refuseOpenWithoutAuth({ host, authEnabled });
  checkPublicUrls(publicUrls);
  const instruments: { metrics?: CoordinatorMetrics } = {};
  const coordinator = await openCoordinator({
    firesSchedules: true,
    ...options,
    instrument(opened, onDefect) {
      const onError = (error: unknown): void => onDefect(error, "metrics");
      instruments.metrics = openMetrics(opened, { version, directory: database ? null : directory, onError });
      return instruments.metrics.store;
    },
  });
  const metrics = instruments.metrics!; // `instrument` has set it
  const { deps, store, dispatcher, hub } = coordinator;
  const { now, newId } = deps;
  const stopFunctions: (() => unknown)[] = [metrics.stop, coordinator.stop];
  try {
    metrics.watchConnections(() => ({ followers: hub.followers, polls: dispatcher.heldPolls }));
    const adminToken = database
      ? await ensureFleetAdminToken(database.secret, store, now, newId)
      : await ensureAdminToken(directory, store, now, newId);
    const backups = await openBackups(options);
    stopFunctions.push(backups.stop);
    const ephemeralTokens = createEphemeralTokens(store.read);
    const sockets = new Set<string>();
    const app = createApp({
      ...deps,
      store: {
        ...store,
        read: { ...store.read, token: ephemeralTokens.token, token_hash: ephemeralTokens.token_hash },
      },
      prove: createProver({ read: ephemeralTokens, attemptTokens: deps.attemptTokens, publicUrls, sockets }),
      metrics,
      backup: backups.make,
      audit: openAudit(store, database ? database.secret : { directory, headCopy: options.headCopy }),
      authEnabled,
      publicUrls,
      cookieName: `drover_${(await store.storeId()).replaceAll(/[^0-9a-zA-Z]/g, "").slice(-12)}`,
      webDirectory,
      ...(keepaliveMs === undefined ? {} : { keepaliveMs }),
      ...(requestLimits === undefined ? {} : { requestLimits }),
      ...(stalledMs === undefined ? {} : { stalledMs }),
      version,
      engine: store.engine.kind,
      startedAt: now(),
    });
    const triggers = runTriggers({
      ...options.deliveries,
      secrets: deps.triggers.secrets,
      vault: deps.triggers.vault,
      store,
      submit: deps.submit,
      rules: deps.triggers.addresses,
      now: dispatcher.storeNow,
      newId,
      version,
      onError: (error) => deps.onDefect(error, "webhooks"),
    });
    stopFunctions.push(triggers.stop);
    const onSocketError = (error: unknown): void => deps.onDefect(error, `listening on ${options.socket}`);
    const server = await listen(app, {
      host,
      port,
      authEnabled,
      socket: options.socket ?? null,
      onSocketError,
      stalledMs,
    });
    if (server.socket !== null) sockets.add(readSocketOrigin(server.socket));
    // End streams and open polls first, because the server waits for open responses.
    stopFunctions.push(async () => {
      hub.stop();
      await Promise.all([dispatcher.stop(), server.close(2000)]);
    });
    let stopResult: Promise<void> | null = null;
    return {
      ...coordinator,
      url: server.url,
      socket: server.socket,
      hasWeb: webDirectory !== null,
      adminToken,
      async issueRunnerToken() {
        // Use the same owner as for a runner that registers with the admin token.
        const subject = (await store.read.token(hashToken(adminToken)))?.subject ?? "admin";
        const label = "runner of this coordinator's own process";
        return ephemeralTokens.issue({
          token_id: newId(),
          role: "runner",
          subject,
          label,
          created_at: now().toISOString(),
        });
      },
      stop: () => (stopResult ??= stopAll(stopFunctions)),
    };
  } catch (error) {
    await stopAll(stopFunctions);
    throw error;
  }
}
