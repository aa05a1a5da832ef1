import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { PortError } from "../model/port-error.ts";
import type { Registered, RunnerPort } from "../model/runner-port.ts";
import { readAnswer } from "./port-answer.ts";
import { uploadFile } from "./upload-file.ts";

export interface HttpPortOptions {
  url: string;
  token: string;
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

/** The runner port over HTTP: kept-alive connections, and one word for everything that can go wrong. */
export function createHttpPort(options: HttpPortOptions): HttpPort {
  const { pollHoldMs = 50_000, timeoutMs = 10_000, silenceMs = 60_000 } = options;
  const base = new URL(options.url);
  const secure = base.protocol === "https:";
  const agent = secure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const never = new AbortController().signal;
  let reportMs = timeoutMs;
  return {
    async register(registration) {
      const registered = await post<Registered>("/runner/register", registration, timeoutMs, never);
      // whoever stands still behind a balancer must leave time to reach another before the lease is over
      reportMs = Math.min(timeoutMs, Math.max(1000, registered.lease_ms / 2));
      return registered;
    },
    poll: (poll, signal) => post("/runner/poll", poll, pollHoldMs + 10_000, signal),
    report: (report) => post("/runner/report", report, reportMs, never),
    upload: (request, content, signal) =>
      uploadFile(request, content, signal, { url: base, token: options.token, silenceMs }),
    sessions: (request) => post("/runner/sessions", request, timeoutMs, never),
    async deregister(request) {
      await post("/runner/deregister", request, timeoutMs, never);
    },
    close: () => agent.destroy(),
  };

  async function post<T>(path: string, body: unknown, limitMs: number, signal: AbortSignal): Promise<T> {
    const bytes = Buffer.from(JSON.stringify(body));
    try {
      return await attempt<T>(path, bytes, limitMs, signal);
    } catch (error) {
      // a kept-alive connection that the other side closed at this very moment: every request may be repeated
      if (!(error instanceof StaleConnection)) throw error;
      return await attempt<T>(path, bytes, limitMs, signal);
    }
  }

  function attempt<T>(path: string, bytes: Buffer, limitMs: number, signal: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request = (secure ? httpsRequest : httpRequest)(
        new URL(`${base.pathname.replace(/\/+$/, "")}${path}`, base),
        {
          method: "POST",
          agent,
          headers: {
            authorization: `Bearer ${options.token}`,
            "content-type": "application/json",
            "content-length": bytes.length,
          },
        },
      );
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${limitMs} ms`)), limitMs);
      const abort = (): void => void request.destroy(new Error("given up by the runner"));
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
      request.on("response", (response) => {
        readAnswer<T>(response).then(resolve, reject).finally(done);
      });
      request.on("error", (cause) => {
        done();
        const Fault = request.reusedSocket && Reflect.get(cause, "code") === "ECONNRESET" ? StaleConnection : PortError;
        reject(new Fault("away", `${options.url} did not answer: ${cause.message}`, cause));
      });
      request.end(bytes);
    });
  }
}

/** Its cause stays the true one: a runner goes by it when the second try fails on another stale connection. */
class StaleConnection extends PortError {}
