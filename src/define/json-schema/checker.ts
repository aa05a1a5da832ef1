import type { Requester } from "../../model/requester.ts";
import { createAllowance } from "./allowance.ts";
import type { SchemaEngine } from "./engine.ts";
import { type Lane, openLane, type PendingCheck } from "./lane.ts";
import { measureSchema, measureValue, type SchemaFault, type SchemaMeasure, type ValueLimits } from "./limits.ts";
import { patternCost } from "./pattern-cost.ts";
import type { CheckResult, Job } from "./protocol.ts";

/** Checks values against users' JSON Schemas without ever holding up the event loop, or one caller for another. */
export interface SchemaChecker {
  /** Without a requester it is Drover's own check. */
  check(schema: object, value: unknown, limits: ValueLimits, requester?: Requester): Promise<CheckResult>;
  /** Is it a schema at all? */
  checkSchema(schema: object, requester?: Requester): Promise<CheckResult>;
  /** Ends the workers; what still waits is answered as `late`. Idempotent. */
  stop(): Promise<void>;
}

/** `checkMs` and `compileMs` are CPU time where the host tells it: a busy machine makes no schema a hostile one. */
export interface CheckerOptions {
  checkMs?: number;
  compileMs?: number;
  startMs?: number;
  /** A worker without work gives its memory back after this long. */
  idleMs?: number;
  /** How much of the workers' time one caller may have at once. */
  allowanceMs?: number;
}

/** Parts of the schema times parts of the value that are checked in place, and steps of patterns: about a millisecond. */
const maxInPlace = 20_000;
const maxNodesInPlace = 200;
const maxStepsInPlace = 200_000;
const maxWaiting = 500;
const maxOfCaller = 8;
/** What a thread costs that has to be ended, beside the time it took: another one has to be started. */
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
  /** For callers and schemas that were slow lately: they wait for each other, and nobody waits for them. */
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

  // who is there to hear the answer is asked only here: most checks are done on the spot
  const inWorker = (job: Job, { caller, signal }: Requester = { caller: own }): Promise<CheckResult> =>
    new Promise((resolve) => {
      const seconds = caller === own ? 0 : allowance.waitOf(caller);
      if (seconds > 0) return resolve(busy("its checks have taken too long", seconds));
      if (caller !== own && lane.countOf(caller) + slowLane.countOf(caller) >= maxOfCaller)
        return resolve(busy(`${maxOfCaller} of its checks are waiting`, 1));
      if (lane.size + slowLane.size >= maxWaiting) return resolve(busy("too many checks are waiting", 5));
      const waiting: PendingCheck = {
        caller,
        job,
        answer(checked) {
          signal?.removeEventListener("abort", leave);
          resolve(checked);
        },
        spent(ms, isCut) {
          if (caller !== own) allowance.spend(caller, ms + (isCut ? restartMs : 0));
          if (isCut) noteSlow(waiting);
        },
      };
      const leave = (): void => {
        lane.drop(waiting);
        slowLane.drop(waiting);
      };
      signal?.addEventListener("abort", leave);
      laneOf(waiting).add(waiting);
      if (signal?.aborted) leave();
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

/** Drover's own checks, of files that its operator wrote, are nobody's to use up. */
const own = "";

/** Whether it can be checked on the spot: no more than a moment, whatever is in the value. */
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
