import { readlinkSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { basename } from "node:path";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { boundReport, replaceLargeEvents } from "../../dispatch/bound-report.ts";
import type { ReportRequest } from "../../model/runner-port.ts";
import type { RouteName } from "../../wire/contracts.ts";
import { checkByContract } from "../check-by-contract.ts";
import { Refusal } from "../refusal.ts";
import { type BodyMessage, type BodyReply, bodyThread } from "./body-message.ts";
import { parseBody } from "./parse-body.ts";

function serve(port: NonNullable<typeof parentPort>): void {
  lowerPriority();
  const bodies = new Map<number, Uint8Array[]>();
  port.on("message", (message: BodyMessage) => {
    const { id } = message;
    const chunks = bodies.get(id) ?? [];
    if (message.type === "chunk") {
      chunks.push(message.bytes);
      bodies.set(id, chunks);
      return;
    }
    bodies.delete(id);
    if (message.type === "end") port.postMessage(reply(id, message.route, chunks));
  });
}

/** Lets the event loop run first on a busy machine. Linux accepts a thread id where other systems need a process id. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    const thread = Number(basename(readlinkSync("/proc/thread-self")));
    setPriority(thread, Math.min(getPriority(thread) + 5, 19));
  } catch (error) {
    // Some containers have no /proc. The thread works without a lower priority.
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

function reply(id: number, route: RouteName, chunks: Uint8Array[]): BodyReply {
  try {
    return { id, value: readBody(route, Buffer.concat(chunks.splice(0))) };
  } catch (error) {
    return error instanceof Refusal ? { id, problem: error.problem } : { id, error: describe(error) };
  }
}

/**
 * Refuses a body that does not match the route's contract. Truncates a report to the part that is processed at once,
 * because the event loop needs more time to receive a larger value. Returns any other value as it was sent, because the
 * API checks it again.
 */
function readBody(route: RouteName, bytes: Uint8Array): unknown {
  const value = parseBody(bytes);
  checkByContract.body(route, value);
  // The contract of the route has just checked it.
  return route === "POST /runner/report" ? boundReport(replaceLargeEvents(value as ReportRequest)) : value;
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

if (!isMainThread && parentPort && workerData === bodyThread.name) serve(parentPort);
