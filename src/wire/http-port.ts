import type { Socket } from "node:net";
import { PortError } from "../model/port-error.ts";
import type { PollRequest, PollResponse, RegistrationResult, RunnerPort } from "../model/runner-port.ts";
import { openConnectionPool, type Target } from "./connection-pool.ts";
import { readResponse, noResponse } from "./port-response.ts";
import { uploadFile } from "./upload-file.ts";

export interface HttpPortOptions extends Target {
  /** How long the coordinator may hold a poll. 10 s later it counts as away. */
  pollHoldMs?: number;
  timeoutMs?: number;
  /** An upload that makes no progress for this long has failed. */
  silenceMs?: number;
}

/** After this many interrupted long polls in a row, the runner assumes that a proxy limits how long a response may last. */
const maxInterruptedLongPolls = 2;

export interface HttpPort extends RunnerPort {
  /** Closes its connections. */
  close(): void;
}

/**
 * The runner port over HTTP with kept-alive connections. Every failure becomes a PortError. If the coordinator is
 * unreachable, idle connections are closed: behind a load balancer, the next request then opens a connection that may
 * reach another coordinator.
 */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { pollHoldMs = 50_000, timeoutMs = 10_000, silenceMs = 60_000 } = options;
  const connections = openConnectionPool(options);
  let reportTimeoutMs = timeoutMs;
  let pollSilenceMs: number | undefined;
  let maxHoldMs: number | undefined;
  let interruptedLongPolls = 0;
  return {
    async register(registration) {
      const registered = await post<RegistrationResult>("/runner/register", registration, { limitMs: timeoutMs });
      // If a coordinator behind a load balancer hangs, there must be time to reach another before the lease expires.
      reportTimeoutMs = Math.min(timeoutMs, Math.max(1000, registered.lease_ms / 2));
      // Older coordinators do not send this field, and no keepalives during a held poll.
      pollSilenceMs = registered.poll_silence_ms;
      // Without keepalives, a long silence would hide that the coordinator is gone.
      maxHoldMs = pollSilenceMs === undefined ? undefined : registered.max_hold_ms;
      return registered;
    },
    async poll(poll, signal) {
      // A runner with a shortage must poll again soon, because only a new poll shows whether the shortage is over.
      const canHoldLong =
        poll.want > 0 && poll.shortage === undefined && interruptedLongPolls < maxInterruptedLongPolls;
      if (maxHoldMs === undefined || !canHoldLong) return sendPoll(poll, pollHoldMs, signal);
      const sentAt = performance.now();
      try {
        const response = await sendPoll({ ...poll, hold_ms: maxHoldMs }, maxHoldMs, signal);
        interruptedLongPolls = 0;
        return response;
      } catch (error) {
        const wasInterrupted =
          error instanceof PortError && error.conflict === "away" && performance.now() - sentAt > pollHoldMs;
        if (wasInterrupted && !signal.aborted) interruptedLongPolls += 1;
        // An older coordinator behind the same address does not know the field.
        if (error instanceof PortError && error.conflict === "refused") maxHoldMs = undefined;
        throw error;
      }
    },
    report: (report) => post("/runner/report", report, { limitMs: reportTimeoutMs }),
    upload: (request, content, signal) =>
      uploadFile(request, content, signal, { url: options.url, connections, silenceMs }),
    loadSession: (request) => post("/runner/session/load", request, { limitMs: timeoutMs }),
    saveSession: (request) => post("/runner/session/save", request, { limitMs: timeoutMs }),
    sessions: (request) => post("/runner/sessions", request, { limitMs: timeoutMs }),
    async deregister(request) {
      await post("/runner/deregister", request, { limitMs: timeoutMs });
    },
    close: () => connections.close(),
  };

  function sendPoll(poll: PollRequest, holdMs: number, signal: AbortSignal): Promise<PollResponse> {
    return post("/runner/poll", poll, { limitMs: holdMs + 10_000, silenceMs: pollSilenceMs, signal });
  }

  async function post<T>(path: string, body: unknown, timeouts: Timeouts): Promise<T> {
    const bytes = Buffer.from(JSON.stringify(body));
    try {
      return await attempt<T>(path, bytes, timeouts);
    } catch (error) {
      // The other side closed a kept-alive connection just now. Every request of this port is safe to repeat.
      if (!(error instanceof StaleConnection)) throw error;
      return await attempt<T>(path, bytes, timeouts);
    }
  }

  async function attempt<T>(path: string, bytes: Buffer, timeouts: Timeouts): Promise<T> {
    let usedSocket: Socket | null = null;
    try {
      return await send<T>(path, bytes, timeouts, (socket) => (usedSocket = socket));
    } catch (error) {
      const isAway = error instanceof PortError && error.conflict === "away";
      if (isAway && !timeouts.signal?.aborted) dropConnections(usedSocket);
      throw error;
    }
  }

  /** Does not affect connections with other requests in flight. */
  function dropConnections(usedSocket: Socket | null): void {
    usedSocket?.destroy();
    connections.dropIdle();
  }

  function send<T>(
    path: string,
    bytes: Buffer,
    { limitMs, silenceMs: quietMs, signal }: Timeouts,
    onSocket: (socket: Socket) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request = connections.request(path, {
        method: "POST",
        headers: { "content-type": "application/json", "content-length": bytes.length },
      });
      const fail = (reason: string): void => {
        const cause = new Error(reason);
        // Reject first: destroying the request raises errors that would hide the cause.
        reject(noResponse(options.url, cause));
        request.destroy(cause);
      };
      const timer = setTimeout(() => fail(`no response within ${limitMs} ms`), limitMs);
      const onSilence = (): void => fail(`no data for ${quietMs} ms`);
      const silenceTimer = quietMs === undefined ? undefined : setTimeout(onSilence, quietMs);
      const abort = (): void => fail("the runner cancelled the request");
      const done = (): void => {
        clearTimeout(timer);
        clearTimeout(silenceTimer);
        signal?.removeEventListener("abort", abort);
      };
      signal?.addEventListener("abort", abort, { once: true });
      if (signal?.aborted) abort();
      request.on("response", (response) => {
        silenceTimer?.refresh();
        readResponse<T>(response, () => silenceTimer?.refresh())
          .then(resolve, reject)
          .finally(done);
      });
      request.on("socket", onSocket);
      request.on("error", (cause) => {
        done();
        const isStale = request.reusedSocket && Reflect.get(cause, "code") === "ECONNRESET";
        const error = noResponse(options.url, cause);
        reject(isStale ? new StaleConnection(error.conflict, error.message, cause) : error);
      });
      request.end(bytes);
    });
  }
}

interface Timeouts {
  /** The limit for the whole response. */
  limitMs: number;
  /** The limit between two chunks of it, keepalives included. */
  silenceMs?: number | undefined;
  signal?: AbortSignal;
}

/** Keeps the original cause, which the runner inspects if the retry hits another stale connection. */
class StaleConnection extends PortError {}
