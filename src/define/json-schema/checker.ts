import type { Requester } from "../../model/requester.ts";
import { createAllowance } from "./allowance.ts";
import type { SchemaEngine } from "./engine.ts";
import { type Lane, openLane, type PendingCheck } from "./lane.ts";
import { measureSchema, measureValue, type SchemaFault, type SchemaMeasure, type ValueLimits } from "./limits.ts";
import { patternCost } from "./pattern-cost.ts";
import type { CheckResult, Job } from "./protocol.ts";

/** Checks values against users' JSON Schemas without blocking the event loop or letting one caller delay another. */
export interface SchemaChecker {
  /** A check without a requester is Drover's own. */
  check(schema: object, value: unknown, limits: ValueLimits, requester?: Requester): Promise<CheckResult>;
  /** Checks that the schema itself is valid. */
  checkSchema(schema: object, requester?: Requester): Promise<CheckResult>;
  /** Terminates the workers. Pending checks are answered with `late`. Idempotent. */
  stop(): Promise<void>;
}

/** `checkMs` and `compileMs` are CPU time if the host reports it, so a busy machine does not make a harmless schema look hostile. */
export interface CheckerOptions {
  checkMs?: number;
  compileMs?: number;
  startMs?: number;
  /** An idle worker is terminated after this time to free its memory. */
  idleMs?: number;
  /** How much worker time one caller may use in a burst. */
  allowanceMs?: number;
}

/** Limits for checking on the main thread: schema nodes times value nodes, and steps of patterns. Both take about a millisecond. */
const maxInPlace = 20_000;
const maxNodesInPlace = 200;
const maxStepsInPlace = 200_000;
const maxPending = 500;
const maxPendingPerCaller = 8;
/** Charged to the caller whose check had its thread terminated, since a new thread must be started. */
const restartMs = 100;

export function openSchemaChecker({
  checkMs = 250,
  compileMs = 1000,
  startMs = 60_000,
  idleMs = 5000,
  allowanceMs = 2000,
}: CheckerOptions = {}): SchemaChecker {
  const measured = new WeakMap<object, SchemaMeasure | { faults: SchemaFault[] }>();
  const allowance = createAllowance(allowanceMs);
  const times = { checkMs, compileMs, startMs, idleMs };
  const lane = openLane(times);
  /** For callers and schemas that were slow recently. They wait for each other and delay nobody else. */
  const slowLane = openLane(times);
  let engine: SchemaEngine | undefined;

  const measure = (schema: object): SchemaMeasure | { faults: SchemaFault[] } => {
    const known = measured.get(schema) ?? measureSchema(schema);
    measured.set(schema, known);
    return known;
  };

  const laneOf = ({ caller, job }: PendingCheck): Lane =>
    allowance.isSlow(callerName(caller)) || allowance.isSlow(schemaName(job)) ? slowLane : lane;

  const noteSlow = ({ caller, job }: PendingCheck): void => {
    allowance.noteSlow(schemaName(job));
    if (caller === own) return;
    allowance.noteSlow(callerName(caller));
    for (const other of lane.take(caller)) slowLane.add(other);
  };

  // reads `signal` only here, because most checks are done on the main thread and never need it
  const inWorker = (job: Job, { caller, signal }: Requester = { caller: own }): Promise<CheckResult> =>
    new Promise((resolve) => {
      const seconds = caller === own ? 0 : allowance.secondsToWait(caller);
      if (seconds > 0) return resolve(busy("the caller's checks have taken too long", seconds));
      if (caller !== own && lane.countOf(caller) + slowLane.countOf(caller) >= maxPendingPerCaller)
        return resolve(busy(`${maxPendingPerCaller} of the caller's checks are waiting`, 1));
      if (lane.size + slowLane.size >= maxPending) return resolve(busy("too many checks are waiting", 5));
      const check: PendingCheck = {
        caller,
        job,
        answer(checked) {
          signal?.removeEventListener("abort", cancel);
          resolve(checked);
        },
        spent(ms, wasTerminated) {
          if (caller !== own) allowance.spend(caller, ms + (wasTerminated ? restartMs : 0));
          if (wasTerminated) noteSlow(check);
        },
      };
      const cancel = (): void => {
        lane.drop(check);
        slowLane.drop(check);
      };
      signal?.addEventListener("abort", cancel);
      laneOf(check).add(check);
      if (signal?.aborted) cancel();
    });

  return {
    async check(schema, value, limits, requester) {
      const size = measure(schema);
      if ("faults" in size) return { faults: size.faults, why: "refused" };
      const parts = measureValue(value, limits);
      if ("fault" in parts) return { faults: [parts.fault], why: "refused" };
      if (!isQuick(size, parts))
        return inWorker({ kind: "check", schemaText: size.text, valueText: parts.text }, requester);
      engine ??= (await import("./engine.ts")).createSchemaEngine();
      return { faults: engine.check(size.text, value) };
    },
    async checkSchema(schema, requester) {
      const size = measure(schema);
      if ("faults" in size) return { faults: size.faults, why: "refused" };
      return inWorker({ kind: "schema", schemaText: size.text }, requester);
    },
    async stop() {
      await Promise.all([lane.stop(), slowLane.stop()]);
    },
  };
}

/** The caller of Drover's own checks, e.g. of the operator's files. It has no allowance to exceed. */
const own = "";

/** Whether the check is cheap enough for the main thread, whatever the value contains. */
function isQuick(schema: SchemaMeasure, value: { nodes: number; text: string }): boolean {
  if (schema.costly || schema.nodes > maxNodesInPlace || schema.nodes * value.nodes > maxInPlace) return false;
  let steps = schema.comparesAll ? value.nodes ** 2 : 0;
  for (const pattern of schema.patterns) steps += patternCost(pattern, value.text.length) * value.nodes;
  return steps <= maxStepsInPlace;
}

function callerName(caller: string): string {
  return `caller ${caller}`;
}

function schemaName({ schemaText }: Job): string {
  return `schema ${schemaText}`;
}

function busy(message: string, retryAfterSeconds: number): CheckResult {
  return { faults: [{ path: "", message: `cannot be checked now: ${message}` }], why: "busy", retryAfterSeconds };
}
