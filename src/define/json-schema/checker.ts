import type { Worker } from "node:worker_threads";
import type { Engine } from "./engine.ts";
import { measureSchema, measureValue, type SchemaFault, type SchemaMeasure, type ValueLimits } from "./limits.ts";
import type { Job, Report } from "./protocol.ts";
import { startWorker } from "./start-worker.ts";
import { threadCpuMs } from "./thread-time.ts";

/** Checks values against users' JSON Schemas without ever holding up the event loop. */
export interface SchemaChecker {
  check(schema: object, value: unknown, limits: ValueLimits): Promise<Checked>;
  /** Is it a schema at all? */
  checkSchema(schema: object): Promise<Checked>;
  /** Ends the worker; what still waits is answered as `late`. Idempotent. */
  stop(): Promise<void>;
}

/** `late`: no answer within the deadline, or none at all; `refused`: past a limit, not even tried. */
export interface Checked {
  faults: SchemaFault[];
  why?: "late" | "refused";
}

/** `checkMs` and `compileMs` are CPU time where the host tells it: a busy machine makes no schema a hostile one. */
export interface CheckerOptions {
  checkMs?: number;
  compileMs?: number;
  startMs?: number;
  /** A worker without work gives its memory back after this long. */
  idleMs?: number;
}

/** Parts of the schema times parts of the value that are checked in place: well under a millisecond. */
const maxInPlace = 20_000;
const maxNodesInPlace = 200;
const maxWaiting = 500;
/** Times its deadline: so long a job may take that does not get the CPU. */
const longestWait = 60;

interface Waiting {
  job: Job;
  answer: (checked: Checked) => void;
}

export function openSchemaChecker({
  checkMs = 500,
  compileMs = 2000,
  startMs = 60_000,
  idleMs = 5000,
}: CheckerOptions = {}): SchemaChecker {
  const measured = new WeakMap<object, SchemaMeasure | { faults: SchemaFault[] }>();
  const queue: Waiting[] = [];
  let engine: Engine | undefined;
  let worker: Worker | undefined;
  let current: Waiting | undefined;
  let timer: NodeJS.Timeout | undefined;
  let thread: string | null = null;
  let starting = false;
  let launch: Promise<void> | undefined;
  let stopped = false;

  const measure = (schema: object): SchemaMeasure | { faults: SchemaFault[] } => {
    const known = measured.get(schema) ?? measureSchema(schema);
    measured.set(schema, known);
    return known;
  };

  const inWorker = (job: Job): Promise<Checked> =>
    new Promise((answer) => {
      if (stopped) return answer(late("the check was stopped"));
      if (queue.length >= maxWaiting) return answer(late("too many checks are waiting"));
      queue.push({ job, answer });
      advance();
    });

  const deadline = (ms: number, message: string): void => {
    const [usedBefore, since] = [threadCpuMs(thread), performance.now()];
    const look = (waitMs: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const used = threadCpuMs(thread);
        const left = used === null || usedBefore === null ? 0 : ms - (used - usedBefore);
        if (left <= 0 || performance.now() - since > ms * longestWait) discard(message);
        else look(Math.max(left, 10));
      }, waitMs);
    };
    look(ms);
  };

  /** One job at a time: only then is it clear whose time has run out. */
  const advance = (): void => {
    if (current || starting || stopped) return;
    if (queue.length === 0) return rest();
    if (!worker) return start();
    current = queue.shift()!;
    worker.ref();
    deadline(compileMs, "the schema took too long to compile");
    worker.postMessage(current.job, []);
  };

  const rest = (): void => {
    clearTimeout(timer);
    if (!worker) return;
    worker.unref();
    timer = setTimeout(() => discard("idle"), idleMs);
    timer.unref();
  };

  const start = (): void => {
    starting = true;
    clearTimeout(timer);
    launch = startWorker().then(
      (started) => {
        worker = started;
        thread = null;
        deadline(startMs, "the checker did not start in time");
        started.on("message", (report: Report) => {
          if (worker === started) hear(report);
        });
        started.on("error", (error) => {
          if (worker === started) discard(`the check failed: ${error.message}`);
        });
        if (stopped) discard("the check was stopped");
      },
      (error: unknown) => {
        fail(`the checker cannot be started: ${String(error)}`);
        starting = false;
        advance();
      },
    );
  };

  const hear = (report: Report): void => {
    switch (report.type) {
      case "ready":
        ({ thread } = report);
        starting = false;
        break;
      case "compiled":
        return deadline(checkMs, `the check took longer than ${checkMs} ms`);
      case "done":
        clearTimeout(timer);
        current?.answer({ faults: report.faults });
        current = undefined;
        break;
      default:
        report satisfies never;
    }
    advance();
  };

  /** Ends the worker whatever it is doing, a regular expression included; the next job gets a new one. */
  const discard = (message: string): void => {
    clearTimeout(timer);
    const ending = worker?.terminate();
    worker = undefined;
    fail(message);
    starting = false;
    ending?.then(advance, advance);
  };

  /** Of a start that failed it is the first in the queue that hears of it, so that nothing is tried for ever. */
  const fail = (message: string): void => {
    const victim = current ?? (starting ? queue.shift() : undefined);
    current = undefined;
    victim?.answer(late(message));
  };

  return {
    async check(schema, value, limits) {
      const size = measure(schema);
      if ("faults" in size) return { faults: size.faults, why: "refused" };
      const parts = measureValue(value, limits);
      if ("fault" in parts) return { faults: [parts.fault], why: "refused" };
      if (size.costly || size.nodes > maxNodesInPlace || size.nodes * parts.nodes > maxInPlace) {
        return inWorker({ kind: "check", schemaText: size.text, valueText: parts.text });
      }
      engine ??= (await import("./engine.ts")).createEngine();
      return { faults: engine.check(size.text, value) };
    },
    async checkSchema(schema) {
      const size = measure(schema);
      if ("faults" in size) return { faults: size.faults, why: "refused" };
      return inWorker({ kind: "schema", schemaText: size.text });
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      for (const { answer } of [...(current ? [current] : []), ...queue.splice(0)])
        answer(late("the check was stopped"));
      current = undefined;
      const ending = worker;
      worker = undefined;
      await ending?.terminate();
      await launch;
    },
  };
}

function late(message: string): Checked {
  return { faults: [{ path: "", message }], why: "late" };
}
