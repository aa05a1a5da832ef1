import { openAudit } from "./compose/open-audit.ts";
import { openBackups } from "./compose/open-backups.ts";
import { type CoordinatorMetrics, openMetrics } from "./compose/open-metrics.ts";
import { recordDirectory } from "./model/state-layout.ts";
import { openCoordinator, type OpenCoordinator, type OpenOptions, stopAll } from "./compose/open-coordinator.ts";
import { createApp } from "./serve/app.ts";
import { fleetAdminToken } from "./serve/fleet-admin-token.ts";
import type { RequestLimits } from "./serve/request-limiter.ts";
import { createEphemeralTokens } from "./serve/ephemeral-tokens.ts";
import { listen, refuseOpenWithoutAuth, checkPublicUrls } from "./serve/listen.ts";
import { findWebDirectory } from "./define/package-directory.ts";
import { runTriggers, type TriggerOptions } from "./trigger/run-triggers.ts";
import { createProver } from "./serve/prover.ts";
import { ensureAdminToken } from "./serve/token-file.ts";
import { hashToken } from "./serve/token-text.ts";
import { originOfSocket } from "./wire/socket-origin.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

export interface CoordinatorOptions extends OpenOptions {
  host?: string;
  /** 0: whichever is free. */
  port?: number;
  /** The path of a socket to listen on as well. */
  socket?: string | null;
  authEnabled?: boolean;
  publicUrls?: readonly string[];
  /** How often a poll that is held says that it still is. */
  keepaliveMs?: number;
  /** What the requests of one caller may take up, and how long nobody may read an answer. */
  requestLimits?: RequestLimits;
  stalledMs?: number;
  version?: string;
  /** How webhooks are tried. */
  deliveries?: Pick<TriggerOptions, "everyMs" | "leaseMs" | "retryMs" | "timeoutMs" | "resolve">;
  /** The folder of the built dashboard, where it is not the package's own. */
  webDirectory?: string | null;
}

export interface Coordinator extends Omit<OpenCoordinator, "stop"> {
  url: string;
  /** Where programs of this user on this machine reach it without proof; null where there is none. */
  socket: string | null;
  /** Whether there is a dashboard at /ui/. */
  hasWeb: boolean;
  adminToken: string;
  /** For a runner that this process starts as one of its own: it may act as a runner, here, and while this one serves. */
  lendRunnerToken(): Promise<string>;
  /** No new requests, every stream and held poll ended, everything stored. Idempotent. */
  stop(): Promise<void>;
}

/** A coordinator that is reached over HTTP. */
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
  const made: { metrics?: CoordinatorMetrics } = {};
  const coordinator = await openCoordinator({
    firesSchedules: true,
    ...options,
    instrument(opened, onDefect) {
      const onFault = (fault: unknown): void => onDefect(fault, "metrics");
      made.metrics = openMetrics(opened, { version, directory: database ? null : directory, onFault });
      return made.metrics.store;
    },
  });
  const metrics = made.metrics!; // set while it was opened
  const { deps, store, dispatcher, hub } = coordinator;
  const { now, newId } = deps;
  const stops: (() => unknown)[] = [metrics.stop, coordinator.stop];
  try {
    metrics.watchWaiting(() => ({ followers: hub.followers, polls: dispatcher.polls }));
    const adminToken = database
      ? await fleetAdminToken(database.secret, store, now, newId)
      : await ensureAdminToken(directory, store, now, newId);
    const backups = await openBackups(options);
    stops.push(backups.stop);
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
    });
    const triggers = runTriggers({
      ...options.deliveries,
      secrets: deps.triggers.secrets,
      store,
      submit: deps.submit,
      rules: deps.triggers.addresses,
      now: dispatcher.storeNow,
      newId,
      version,
      onFault: (fault) => deps.onDefect(fault, "webhooks"),
    });
    stops.push(triggers.stop);
    const onSocketFault = (fault: unknown): void => deps.onDefect(fault, `listening on ${options.socket}`);
    const server = await listen(app, {
      host,
      port,
      authEnabled,
      socket: options.socket ?? null,
      onSocketFault,
      stalledMs,
    });
    if (server.socket !== null) sockets.add(originOfSocket(server.socket));
    // streams and held polls first: they would keep the server waiting
    stops.push(async () => {
      hub.stop();
      await Promise.all([dispatcher.stop(), server.close(2000)]);
    });
    let stopping: Promise<void> | null = null;
    return {
      ...coordinator,
      url: server.url,
      socket: server.socket,
      hasWeb: webDirectory !== null,
      adminToken,
      async lendRunnerToken() {
        // whose its runners are that were registered with the admin token itself
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
      stop: () => (stopping ??= stopAll(stops)),
    };
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}
