import type { Socket } from "node:net";
import { PortError } from "../model/port-error.ts";
import type { Registered, RunnerPort } from "../model/runner-port.ts";
import { openConnectionPool, type Target } from "./connection-pool.ts";
import { readResponse, noResponse } from "./port-response.ts";
import { uploadFile } from "./upload-file.ts";

export interface HttpPortOptions extends Target {
  /** How long the coordinator may hold a poll; it gets 10 s more before it counts as away. */
  pollHoldMs?: number;
  timeoutMs?: number;
  /** An upload that gets no further for so long has failed. */
  silenceMs?: number;
}

export interface HttpPort extends RunnerPort {
  /** Lets go of idle connections. */
  close(): void;
}

/**
 * The runner port over HTTP: kept-alive connections, and one word for everything that can go wrong. Where nobody answers,
 * or only to say that it cannot, idle connections are let go: behind a balancer the next request then opens one that
 * may lead to another coordinator.
 */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { pollHoldMs = 50_000, timeoutMs = 10_000, silenceMs = 60_000 } = options;
  const connections = openConnectionPool(options);
  let reportMs = timeoutMs;
  let pollSilenceMs: number | undefined;
  return {
    async register(registration) {
      const registered = await post<Registered>("/runner/register", registration, { limitMs: timeoutMs });
      // whoever stands still behind a balancer must leave time to reach another before the lease is over
      reportMs = Math.min(timeoutMs, Math.max(1000, registered.lease_ms / 2));
      // a coordinator from before there was this field says nothing while it holds a poll
      pollSilenceMs = registered.poll_silence_ms;
      return registered;
    },
    poll: (poll, signal) =>
      post("/runner/poll", poll, { limitMs: pollHoldMs + 10_000, quietMs: pollSilenceMs, signal }),
    report: (report) => post("/runner/report", report, { limitMs: reportMs }),
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

  async function post<T>(path: string, body: unknown, patience: Patience): Promise<T> {
    const bytes = Buffer.from(JSON.stringify(body));
    try {
      return await attempt<T>(path, bytes, patience);
    } catch (error) {
      // a kept-alive connection that the other side closed at this very moment: every request may be repeated
      if (!(error instanceof StaleConnection)) throw error;
      return await attempt<T>(path, bytes, patience);
    }
  }

  async function attempt<T>(path: string, bytes: Buffer, patience: Patience): Promise<T> {
    let used: Socket | null = null;
    try {
      return await send<T>(path, bytes, patience, (socket) => (used = socket));
    } catch (error) {
      const away = error instanceof PortError && error.conflict === "away";
      if (away && !patience.signal?.aborted) letGo(used);
      throw error;
    }
  }

  /** Others that are in use are judged by what becomes of their own requests. */
  function letGo(used: Socket | null): void {
    used?.destroy();
    connections.dropIdle();
  }

  function send<T>(
    path: string,
    bytes: Buffer,
    { limitMs, quietMs, signal }: Patience,
    onSocket: (socket: Socket) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request = connections.request(path, {
        method: "POST",
        headers: { "content-type": "application/json", "content-length": bytes.length },
      });
      const giveUp = (why: string): void => {
        const cause = new Error(why);
        // before what breaks off with it is told as a reason of its own
        reject(noResponse(options.url, cause));
        request.destroy(cause);
      };
      const timer = setTimeout(() => giveUp(`no answer within ${limitMs} ms`), limitMs);
      const silent = (): void => giveUp(`nothing was heard for ${quietMs} ms`);
      const silence = quietMs === undefined ? undefined : setTimeout(silent, quietMs);
      const abort = (): void => giveUp("given up by the runner");
      const done = (): void => {
        clearTimeout(timer);
        clearTimeout(silence);
        signal?.removeEventListener("abort", abort);
      };
      signal?.addEventListener("abort", abort, { once: true });
      if (signal?.aborted) abort();
      request.on("response", (response) => {
        silence?.refresh();
        readResponse<T>(response, () => silence?.refresh())
          .then(resolve, reject)
          .finally(done);
      });
      request.on("socket", onSocket);
      request.on("error", (cause) => {
        done();
        const stale = request.reusedSocket && Reflect.get(cause, "code") === "ECONNRESET";
        const fault = noResponse(options.url, cause);
        reject(stale ? new StaleConnection(fault.conflict, fault.message, cause) : fault);
      });
      request.end(bytes);
    });
  }
}

/** How long one waits for an answer. */
interface Patience {
  limitMs: number;
  /** The same for each piece of it. */
  quietMs?: number | undefined;
  signal?: AbortSignal;
}

/** Its cause stays the true one: a runner goes by it when the second try fails on another stale connection. */
class StaleConnection extends PortError {}
