import { Agent, request } from "node:http";
import type { Drover } from "./drover.ts";
import { payload } from "./side.ts";
import type { StartVariant } from "./submit-to-start.ts";
import type { JobTimes } from "./job-times.ts";

/** Submits with Node's HTTP client and waits until the executor inside the runner starts. No process is spawned. */
export function createDroverStart(drover: Drover, jobTimes: JobTimes, durability: string): StartVariant {
  const post = createPoster(drover);
  return {
    name: "drover",
    label: "Drover: POST /runs until the executor runs",
    durability,
    submit: (id) => post("noop", id),
    reached: jobTimes.started,
  };
}

/** Waits until the result of a command is streamed back. `stop` ends the stream. */
export function createDroverResult(drover: Drover, durability: string): StartVariant & { stop(): void } {
  const post = createPoster(drover);
  const results = followResults(drover);
  return {
    name: "drover-true",
    label: "Drover: POST /runs of /bin/true until its result is streamed back: PID namespace, audited",
    durability,
    submit: (id) => post("true", id),
    reached: results.next,
    stop: results.stop,
  };
}

function createPoster({ url, token }: Drover): (agent: string, id: string) => Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const target = new URL("/runs", url);
  return (agent_name, id) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ agent_name, parameters: payload(id) });
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      };
      const submission = request(target, { method: "POST", agent, headers }, (response) => {
        response
          .resume()
          .once("end", () =>
            response.statusCode === 201 ? resolve() : reject(new Error(`POST /runs: ${response.statusCode}`)),
          );
      });
      submission.once("error", reject);
      submission.end(body);
    });
}

/** The times at which results of /bin/true arrive over the stream of all events. */
function followResults({ client }: Drover): { next(): Promise<bigint>; stop(): void } {
  const ending = new AbortController();
  const waiting: ((at: bigint) => void)[] = [];
  let fault: unknown = null;
  void (async () => {
    const { next_cursor } = await client.events({ limit: 1 });
    for await (const { event } of client.follow({ after: next_cursor ?? 0, signal: ending.signal })) {
      if (event.type === "result" && event.exit_code === 0) waiting.shift()?.(process.hrtime.bigint());
    }
  })().catch((error: unknown) => (fault = error));
  return {
    next: () => (fault ? Promise.reject(fault) : new Promise((resolve) => waiting.push(resolve))),
    stop: () => ending.abort(),
  };
}
