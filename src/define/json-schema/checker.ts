import type { Requester } from "../../model/requester.ts";
import { createAllowance } from "./allowance.ts";
import type { SchemaEngine } from "./engine.ts";
import { type Lane, openLane, type PendingCheck } from "./lane.ts";
import { measureSchema, measureValue, type SchemaFault, type SchemaMeasure, type ValueLimits } from "./limits.ts";
import { estimatePatternCost } from "./pattern-cost.ts";
import type { CheckResult, CheckRequest } from "./protocol.ts";

/** Checks values against users' JSON Schemas without blocking the event loop or letting one caller delay another. */
export interface SchemaChecker {
  /** Without a requester, the check is Drover's own and has no allowance to exceed. */
  check(schema: object, value: unknown, limits: ValueLimits, requester?: Requester): Promise<CheckResult>;
  /** Checks that the schema itself is valid. */
  checkSchema(schema: object, requester?: Requester): Promise<CheckResult>;
  /** Terminates the workers. Pending checks resolve to `late`. Idempotent. */
  stop(): Promise<void>;
}

/**
 * `checkMs` and `compileMs` are CPU time if the host reports it, so a busy machine does not make a harmless schema look
 * hostile.
 */
export interface CheckerOptions {
  checkMs?: number;
  compileMs?: number;
  startMs?: number;
  /** An idle worker is terminated after this time to free its memory. */
  idleMs?: number;
  /** How much worker time one caller may use in a burst. */
  allowanceMs?: number;
}

/**
 * Limits for checking on the main thread: schema nodes times value nodes, schema nodes, and steps of patterns. Each takes
 * about a millisecond.
 */
const maxCostOnMainThread = 20_000;
const maxNodesOnMainThread = 200;
const maxStepsOnMainThread = 200_000;
const maxPending = 500;
const maxPendingPerCaller = 8;
/** Charged to a caller whose check made Drover terminate its thread, because a new one must be started. */
const restartCostMs = 100;

export function openSchemaChecker({
  checkMs = 250,
  compileMs = 1000,
  startMs = 60_000,
  idleMs = 5000,
  allowanceMs = 2000,
}: CheckerOptions = {}): SchemaChecker {
  const measures = new WeakMap<object, SchemaMeasure | { faults: SchemaFault[] }>();
  const allowance = createAllowance(allowanceMs);
  const times = { checkMs, compileMs, startMs, idleMs };
  const lane = openLane(times);
  /** For callers and schemas that were slow recently. They wait for each other and do not delay other callers. */
  const slowLane = openLane(times);
  let engine: SchemaEngine | undefined;

  const measure = (schema: object): SchemaMeasure | { faults: SchemaFault[] } => {
    const result = measures.get(schema) ?? measureSchema(schema);
    measures.set(schema, result);
    return result;
  };

  const chooseLane = ({ caller, request }: PendingCheck): Lane =>
    allowance.isSlow(toCallerKey(caller)) || allowance.isSlow(toSchemaKey(request)) ? slowLane : lane;

  const markSlow = ({ caller, request }: PendingCheck): void => {
    allowance.markSlow(toSchemaKey(request));
    if (caller === internalCaller) return;
    allowance.markSlow(toCallerKey(caller));
    for (const check of lane.removeQueued(caller)) slowLane.add(check);
  };

  // Read `signal` only here: most checks run on the main thread and never need it.
  const checkInWorker = (
    request: CheckRequest,
    { subject: caller, signal }: Requester = { subject: internalCaller },
  ): Promise<CheckResult> =>
    new Promise((resolve) => {
      const seconds = caller === internalCaller ? 0 : allowance.secondsToWait(caller);
      if (seconds > 0) return resolve(createBusyResult("the caller's checks have taken too long", seconds));
      if (caller !== internalCaller && lane.count(caller) + slowLane.count(caller) >= maxPendingPerCaller)
        return resolve(createBusyResult(`${maxPendingPerCaller} of the caller's checks are waiting`, 1));
      if (lane.size + slowLane.size >= maxPending) return resolve(createBusyResult("too many checks are waiting", 5));
      const check: PendingCheck = {
        caller,
        request,
        settle(result) {
          signal?.removeEventListener("abort", cancel);
          resolve(result);
        },
        onSpent(ms, wasTerminated) {
          if (caller !== internalCaller) allowance.spend(caller, ms + (wasTerminated ? restartCostMs : 0));
          if (wasTerminated) markSlow(check);
        },
      };
      const cancel = (): void => {
        lane.drop(check);
        slowLane.drop(check);
      };
      signal?.addEventListener("abort", cancel);
      chooseLane(check).add(check);
      if (signal?.aborted) cancel();
    });

  return {
    async check(schema, value, limits, requester) {
      const schemaMeasure = measure(schema);
      if ("faults" in schemaMeasure) return { faults: schemaMeasure.faults, reason: "refused" };
      const measured = measureValue(value, limits);
      if ("fault" in measured) return { faults: [measured.fault], reason: "refused" };
      if (!isQuick(schemaMeasure, measured))
        return checkInWorker({ kind: "check", schemaText: schemaMeasure.text, valueText: measured.text }, requester);
      engine ??= (await import("./engine.ts")).createSchemaEngine();
      return { faults: engine.check(schemaMeasure.text, value) };
    },
    async checkSchema(schema, requester) {
      const schemaMeasure = measure(schema);
      if ("faults" in schemaMeasure) return { faults: schemaMeasure.faults, reason: "refused" };
      return checkInWorker({ kind: "schema", schemaText: schemaMeasure.text }, requester);
    },
    async stop() {
      await Promise.all([lane.stop(), slowLane.stop()]);
    },
  };
}

/** The caller of Drover's own checks, e.g. of the operator's files. It has no allowance to exceed. */
const internalCaller = "";

/** Whether the check is cheap enough for the main thread, whatever the value contains. */
function isQuick(schema: SchemaMeasure, value: { nodes: number; text: string }): boolean {
  if (schema.isCostly || schema.nodes > maxNodesOnMainThread || schema.nodes * value.nodes > maxCostOnMainThread)
    return false;
  let steps = schema.comparesAll ? value.nodes ** 2 : 0;
  for (const pattern of schema.patterns) steps += estimatePatternCost(pattern, value.text.length) * value.nodes;
  return steps <= maxStepsOnMainThread;
}

function toCallerKey(caller: string): string {
  return `caller ${caller}`;
}

function toSchemaKey({ schemaText }: CheckRequest): string {
  return `schema ${schemaText}`;
}

function createBusyResult(message: string, retryAfterSeconds: number): CheckResult {
  return { faults: [{ path: "", message: `cannot be checked now: ${message}` }], reason: "busy", retryAfterSeconds };
}
