import { BugError } from "../model/errors.ts";
import type { Redactor } from "../model/process.ts";
import type { Op, Reads, ResultOf, Store } from "../model/store.ts";
import type { Engine } from "./engine.ts";
import { first, type Work } from "./query.ts";
import { readEvents, readFeed, readLastPlace } from "./reads/events.ts";
import { readExecution, readExecutions } from "./reads/executions.ts";
import { readRun, readRunRow, readRuns } from "./reads/runs.ts";
import type { Writer } from "./writer.ts";

/** `explain` extends a fault by what to do about it. */
export function applyWith(
  writer: Writer | null,
  redactor: Redactor | undefined,
  explain: (fault: unknown) => Promise<unknown> = async (fault) => fault,
): Store["apply"] {
  return async <const T extends readonly Op[]>(ops: T) => {
    if (writer === null) throw new BugError("a store opened for reading cannot apply operations");
    const pieces = redactor?.valueInPieces(ops);
    let piece = pieces?.next();
    // Redact large operations piece by piece, so that the event loop keeps turning.
    for (; piece?.done === false; piece = pieces?.next()) await new Promise((resolve) => setImmediate(resolve));
    const results = await writer.apply(piece?.value ?? ops).catch(async (fault) => {
      throw await explain(fault);
    });
    // There is one result per operation, in the same order, so the array has the shape of T.
    return results as { [K in keyof T]: ResultOf<T[K]> };
  };
}

export function storeIdOf(engine: Engine): () => Promise<string> {
  return () => engine.read(readStoreId);
}

export function* readStoreId(): Work<string> {
  const [row] = yield first("select store_id from store");
  if (row === undefined) throw new BugError("the store table has no row with the record's id");
  return String(row["store_id"]);
}

type OtherReads = typeof import("./reads/coordinator-reads.ts");

/** With `mayIndex` a search first indexes new events. Without it the search only reports that some are missing. */
export function readsOf(engine: Engine, mayIndex: boolean): Reads {
  // A cold `exec` never needs these, so they load on first use. Keep the promise: even a repeated import costs time.
  let loaded: Promise<OtherReads> | null = null;
  const other = (): Promise<OtherReads> => (loaded ??= import("./reads/coordinator-reads.ts"));
  return {
    run: (run_id) => engine.read(() => readRun(run_id)),
    run_row: (run_id) => engine.read(() => readRunRow(run_id)),
    runs: (filter, page) => engine.read(() => readRuns(filter, page)),
    search: async (text, filter, page) =>
      (await import("./search/search.ts")).search(engine, mayIndex, text, filter, page),
    events: (run_id, after, limit, maxBytes) => engine.readPage(() => readEvents(run_id, after, limit, maxBytes)),
    feed: (after, limit, maxBytes) => engine.readPage(() => readFeed(after, limit, maxBytes)),
    last_position: (run_id) => engine.read(() => readLastPlace(run_id)),
    execution: (execution_id) => engine.read(() => readExecution(execution_id)),
    executions: (filter, page) => engine.read(() => readExecutions(filter, page)),
    runner: (runner_id) => later(({ readRunner }) => readRunner(runner_id)),
    runners: () => later(({ readRunners }) => readRunners()),
    runner_page: (page) => later(({ readRunnerPage }) => readRunnerPage(page)),
    agents: (name) => later(({ readAgents }) => readAgents(name)),
    agent_page: (page) => later(({ readAgentPage }) => readAgentPage(page)),
    agent_names: (limit) => later(({ readAgentNames }) => readAgentNames(limit)),
    poller: (poll) => later(({ readPoller }) => readPoller(poll)),
    with_work: (runner_ids) => later(({ readWithWork }) => readWithWork(runner_ids)),
    why: (run_id, shortages) => later(({ readWhy }) => readWhy(run_id, shortages)),
    agent_of: (run_id) => later(({ readAgentOf }) => readAgentOf(run_id)),
    session: (session_id) => later(({ readSession }) => readSession(session_id)),
    sessions: (filter, page) => later(({ readSessions }) => readSessions(filter, page)),
    forks: (session_id, limit) => later(({ readForks }) => readForks(session_id, limit)),
    versions: (session_id) => later(({ readVersions }) => readVersions(session_id)),
    gone_sessions: (session_ids) => later(({ readGoneSessions }) => readGoneSessions(session_ids)),
    session_state: (of, files_after) => later(({ readSessionState }) => readSessionState(of, files_after)),
    files: (run_id) => later(({ readFiles }) => readFiles(run_id)),
    file: (run_id, path) => later(({ readFile }) => readFile(run_id, path)),
    question: (run_id, request_id) => later(({ readQuestion }) => readQuestion(run_id, request_id)),
    questions: (filter, page) => later(({ readQuestions }) => readQuestions(filter, page)),
    usage: (filter, limit) => later(({ readUsage }) => readUsage(filter, limit)),
    stats: async (span) => (await import("./reads/stats.ts")).readStats(engine, span),
    schedule: (schedule_id) => later(({ readSchedule }) => readSchedule(schedule_id)),
    schedules: (filter, page) => later(({ readSchedules }) => readSchedules(filter, page)),
    slots: (schedule_id, page) => later(({ readSlots }) => readSlots(schedule_id, page)),
    due_schedules: (by, limit) => later(({ readDueSchedules }) => readDueSchedules(by, limit)),
    hook: (name) => later(({ readHook }) => readHook(name)),
    hooks: (page) => later(({ readHooks }) => readHooks(page)),
    webhook: (name) => later(({ readWebhook }) => readWebhook(name)),
    webhooks: (page) => later(({ readWebhooks }) => readWebhooks(page)),
    delivery: (delivery_id) => later(({ readDelivery }) => readDelivery(delivery_id)),
    deliveries: (filter, page) => later(({ readDeliveries }) => readDeliveries(filter, page)),
    triggers_due: (now) => later(({ readTriggersDue }) => readTriggersDue(now)),
    pending_chains: (limit) => later(({ readPendingChains }) => readPendingChains(limit)),
    token: (hash) => later(({ readToken }) => readToken(hash)),
    token_hash: (beginning) => later(({ readTokenHash }) => readTokenHash(beginning)),
    tokens: (page) => later(({ readTokens }) => readTokens(page)),
  };

  async function later<T>(read: (reads: OtherReads) => Work<T>): Promise<T> {
    const reads = await other();
    return engine.read(() => read(reads));
  }
}
