import { Agent, request } from "node:http";
import type { Drover } from "./drover.ts";
import { payload } from "./side.ts";
import type { StartVariant } from "./submit-to-start.ts";
import type { JobTimes } from "./job-times.ts";

/** Submits with Node's HTTP client and waits until the executor inside the runner starts. No process is spawned. */
export function createStartVariant(drover: Drover, jobTimes: JobTimes, durability: string): StartVariant {
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
export function createResultVariant(drover: Drover, durability: string): StartVariant & { stop(): void } {
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

/** The times at which results of /bin/true arrive over the stream of all events. `next` rejects if a run or the stream fails. */
function followResults({ client }: Drover): { next(): Promise<bigint>; stop(): void } {
  const controller = new AbortController();
  const waiting: { resolve(at: bigint): void; reject(error: unknown): void }[] = [];
  let fault: unknown = null;
  const follow = async (): Promise<void> => {
    const { next_cursor } = await client.events({ limit: 1 });
    for await (const { run_id, event } of client.follow({ after: next_cursor ?? 0, signal: controller.signal })) {
      if (event.type !== "result") continue;
      if (event.exit_code === 0) waiting.shift()?.resolve(process.hrtime.bigint());
      else if (event.status !== "completed")
        waiting.shift()?.reject(new Error(`Run ${run_id} is ${event.status}: ${event.error ?? event.reason}`));
    }
  };
  follow().catch((error: unknown) => {
    fault = error;
    for (const { reject } of waiting.splice(0)) reject(error);
  });
  return {
    next: () => (fault ? Promise.reject(fault) : new Promise((resolve, reject) => waiting.push({ resolve, reject }))),
    stop: () => controller.abort(),
  };
}
