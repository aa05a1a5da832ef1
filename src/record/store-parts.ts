import { BugError } from "../model/errors.ts";
import type { Redactor } from "../model/process.ts";
import type { Op, Reads, ResultOf, Store } from "../model/store.ts";
import type { Engine } from "./engine.ts";
import { first, type Work } from "./query.ts";
import { readEvents, readFeed, readLastPosition } from "./reads/events.ts";
import { readExecution, readExecutions } from "./reads/executions.ts";
import { readRun, readRunRow, readRuns } from "./reads/runs.ts";
import type { Writer } from "./writer.ts";

/** `explain` adds the next step to an error. */
export function createApply(
  writer: Writer | null,
  redactor: Redactor | undefined,
  explain: (error: unknown) => Promise<unknown> = async (error) => error,
): Store["apply"] {
  return async <const T extends readonly Op[]>(ops: T) => {
    if (writer === null) throw new BugError("a store opened for reading cannot apply operations");
    const pieces = redactor?.valueInPieces(ops);
    let piece = pieces?.next();
    // Redact large operations piece by piece, so that the event loop is not blocked.
    for (; piece?.done === false; piece = pieces?.next()) await new Promise((resolve) => setImmediate(resolve));
    const results = await writer.apply(piece?.value ?? ops).catch(async (error) => {
      throw await explain(error);
    });
    // There is one result per operation, in the same order, so the array has the shape of T.
    return results as { [K in keyof T]: ResultOf<T[K]> };
  };
}

export function createStoreIdReader(engine: Engine): () => Promise<string> {
  return () => engine.read(readStoreId);
}

export function* readStoreId(): Work<string> {
  const [row] = yield first("select store_id from store");
  if (row === undefined) throw new BugError("the store table has no row with the record's id");
  return String(row["store_id"]);
}

type CoordinatorReads = typeof import("./reads/coordinator-reads.ts");

/** With `canIndex` a search first indexes new events. Without it the search only reports that some are missing. */
export function createReads(engine: Engine, canIndex: boolean): Reads {
  // A cold `exec` never needs these, so they load on first use. Keep the promise: even a repeated import costs time.
  let loading: Promise<CoordinatorReads> | null = null;
  const loadCoordinatorReads = (): Promise<CoordinatorReads> => (loading ??= import("./reads/coordinator-reads.ts"));
  return {
    run: (run_id) => engine.read(() => readRun(run_id)),
    run_row: (run_id) => engine.read(() => readRunRow(run_id)),
    runs: (filter, page) => engine.read(() => readRuns(filter, page)),
    search: async (text, filter, page) =>
      (await import("./search/search.ts")).search(engine, canIndex, text, filter, page),
    events: (run_id, after, limit, maxBytes) => engine.readPage(() => readEvents(run_id, after, limit, maxBytes)),
    feed: (after, limit, maxBytes) => engine.readPage(() => readFeed(after, limit, maxBytes)),
    last_position: (run_id) => engine.read(() => readLastPosition(run_id)),
    execution: (execution_id) => engine.read(() => readExecution(execution_id)),
    executions: (filter, page) => engine.read(() => readExecutions(filter, page)),
    runner: (runner_id) => readLazily(({ readRunner }) => readRunner(runner_id)),
    runners: () => readLazily(({ readRunners }) => readRunners()),
    runner_page: (page) => readLazily(({ readRunnerPage }) => readRunnerPage(page)),
    agents: (name) => readLazily(({ readAgents }) => readAgents(name)),
    agent_page: (page) => readLazily(({ readAgentPage }) => readAgentPage(page)),
    agent_names: (limit) => readLazily(({ readAgentNames }) => readAgentNames(limit)),
    poller: (poll) => readLazily(({ readPoller }) => readPoller(poll)),
    runners_with_work: (runner_ids) => readLazily(({ readRunnersWithWork }) => readRunnersWithWork(runner_ids)),
    why: (run_id, shortages) => readLazily(({ readWaitReasons }) => readWaitReasons(run_id, shortages)),
    submitted_agent: (run_id) => readLazily(({ readSubmittedAgent }) => readSubmittedAgent(run_id)),
    session: (session_id) => readLazily(({ readSession }) => readSession(session_id)),
    sessions: (filter, page) => readLazily(({ readSessions }) => readSessions(filter, page)),
    forks: (session_id, limit) => readLazily(({ readForks }) => readForks(session_id, limit)),
    versions: (session_id) => readLazily(({ readVersions }) => readVersions(session_id)),
    deleted_sessions: (session_ids) => readLazily(({ readDeletedSessions }) => readDeletedSessions(session_ids)),
    session_state: (attempt, files_after) =>
      readLazily(({ readSessionState }) => readSessionState(attempt, files_after)),
    files: (run_id) => readLazily(({ readFiles }) => readFiles(run_id)),
    file: (run_id, path) => readLazily(({ readFile }) => readFile(run_id, path)),
    question: (run_id, request_id) => readLazily(({ readQuestion }) => readQuestion(run_id, request_id)),
    questions: (filter, page) => readLazily(({ readQuestions }) => readQuestions(filter, page)),
    usage: (filter, limit) => readLazily(({ readUsage }) => readUsage(filter, limit)),
    stats: async (span) => (await import("./reads/stats.ts")).readStats(engine, span),
    schedule: (schedule_id) => readLazily(({ readSchedule }) => readSchedule(schedule_id)),
    schedules: (filter, page) => readLazily(({ readSchedules }) => readSchedules(filter, page)),
    slots: (schedule_id, page) => readLazily(({ readSlots }) => readSlots(schedule_id, page)),
    due_schedules: (by, limit) => readLazily(({ readDueSchedules }) => readDueSchedules(by, limit)),
    hook: (name) => readLazily(({ readHook }) => readHook(name)),
    hooks: (page) => readLazily(({ readHooks }) => readHooks(page)),
    webhook: (name) => readLazily(({ readWebhook }) => readWebhook(name)),
    webhooks: (page) => readLazily(({ readWebhooks }) => readWebhooks(page)),
    delivery: (delivery_id) => readLazily(({ readDelivery }) => readDelivery(delivery_id)),
    deliveries: (filter, page) => readLazily(({ readDeliveries }) => readDeliveries(filter, page)),
    triggers_due: (now) => readLazily(({ readTriggersDue }) => readTriggersDue(now)),
    pending_chains: (limit) => readLazily(({ readPendingChains }) => readPendingChains(limit)),
    token: (hash) => readLazily(({ readToken }) => readToken(hash)),
    token_hash: (prefix) => readLazily(({ readTokenHash }) => readTokenHash(prefix)),
    tokens: (page) => readLazily(({ readTokens }) => readTokens(page)),
  };

  async function readLazily<T>(read: (reads: CoordinatorReads) => Work<T>): Promise<T> {
    const reads = await loadCoordinatorReads();
    return engine.read(() => read(reads));
  }
}
