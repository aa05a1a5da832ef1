import { Socket } from "node:net";
import pg from "pg";
import { BugError } from "../../model/errors.ts";
import type { Query, Row } from "../query.ts";
import { translateStatement } from "./dialect.ts";

/** All tables are in their own schema, because a database may be shared with other programs. */
export const schema = "drover";

export interface Connection {
  /** Waits for the rows of a query. A query without rows is only sent; `flush` reports its error. */
  query(query: Query): Promise<Row[]>;
  /** Sends several statements without values in one message. Returns the rows of the last one that has any. */
  exec(text: string): Promise<Row[]>;
  /** Waits until the server has completed everything that was sent. Throws the first error. */
  flush(): Promise<void>;
  quote(text: string): string;
  onNotice(listener: (channel: string, payload: string) => void): void;
  readonly broken: boolean;
  end(): void;
}

interface ConnectionOptions {
  /**
   * Aborts a stalled transaction, because it would block all other writers. Also applies if the client does not read the
   * server's responses.
   */
  idleInTransactionMs?: number;
  /** How long to wait for a lock; forever by default. */
  lockMs?: number;
  /**
   * Makes every statement use an index, however large the tables are and however outdated the server's statistics.
   * Otherwise the plan would depend on when the server last analyzed the tables.
   */
  byIndexOnly?: true;
  /** If the server does not respond within this time, the connection counts as broken. */
  responseMs?: number;
  /** Called once if the connection breaks before `end`. */
  onBroken?(error: unknown): void;
}

const connectMs = 5000;
const flushBytes = 32 * 1024;
const closeTimeoutMs = 1000;
const { types } = pg;
const { BOOL, INT8, NUMERIC } = types.builtins;

type TypeId = Parameters<typeof types.getTypeParser>[0];
/** Parse values as SQLite returns them: booleans are 1 or 0, and all integers that Drover stores fit into a number. */
const parsers = new Map<TypeId, (text: string) => number>([
  [BOOL, (text) => (text === "t" ? 1 : 0)],
  [INT8, Number],
  [NUMERIC, Number],
]);

/** Opens one connection. Statements are pipelined: each is sent without waiting for earlier responses. */
export async function connect(url: string, options: ConnectionOptions = {}): Promise<Connection> {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url,
    stream: () => socket,
    pipeline: true,
    connectionTimeoutMillis: connectMs,
    ...(options.responseMs === undefined ? {} : { query_timeout: options.responseMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "drover",
    types: { getTypeParser: (oid: TypeId, format) => parsers.get(oid) ?? types.getTypeParser(oid, format) },
  });
  let broken = false;
  let ending = false;
  let corked = false;
  const pending = new Set<Promise<unknown>>();
  let firstError: unknown = null;
  const markBroken = (cause: unknown): void => {
    if (broken || ending) return;
    broken = true;
    options.onBroken?.(cause);
  };
  client.on("error", markBroken);
  client.on("end", () => markBroken(new Error("the connection was closed")));
  await client.connect();
  await client.query(buildSettings(options));
  return {
    get broken() {
      return broken;
    },
    query({ text, values, returns }) {
      corkUntilNextTick();
      const sent = client.query({ ...translateStatement(text), values: values as unknown[] });
      if (returns !== "none") return sent.then(({ rows }) => rows as Row[]);
      track(sent);
      return noRows;
    },
    async exec(text) {
      corkUntilNextTick();
      const result: unknown = await client.query(text);
      const results = (Array.isArray(result) ? result : [result]) as { rows: Row[]; command: string }[];
      // PostgreSQL treats the commit of a failed transaction as a rollback and reports no error.
      if (text.endsWith("commit") && results.at(-1)?.command !== "COMMIT")
        throw new BugError("a failed transaction was committed");
      return results.findLast(({ rows }) => rows.length > 0)?.rows ?? [];
    },
    async flush() {
      await Promise.all(pending);
      const error = firstError;
      firstError = null;
      if (error !== null) throw error;
    },
    quote: (text) => client.escapeLiteral(text),
    onNotice: (listener) => void client.on("notification", ({ channel, payload }) => listener(channel, payload ?? "")),
    end() {
      ending = true;
      // A server that is busy with a statement, or unresponsive, does not react to a regular close.
      const timer = setTimeout(() => socket.destroy(), closeTimeoutMs).unref();
      socket.once("close", () => clearTimeout(timer));
      client.end().catch(() => undefined); // The connection is closed either way.
    },
  };

  /**
   * Sends everything from one turn of the event loop in one packet, unless there is so much that it should go out earlier.
   */
  function corkUntilNextTick(): void {
    if (corked && socket.writableLength > flushBytes) {
      socket.uncork();
      socket.cork();
    }
    if (corked) return;
    corked = true;
    socket.cork();
    process.nextTick(() => {
      corked = false;
      socket.uncork();
    });
  }

  function track(sent: Promise<unknown>): void {
    const tracked: Promise<void> = sent.then(
      () => void pending.delete(tracked),
      (cause: unknown) => {
        pending.delete(tracked);
        firstError ??= cause;
      },
    );
    pending.add(tracked);
  }
}

const noRows: Promise<Row[]> = Promise.resolve([]);

/**
 * The settings of a connection. `synchronous_commit` must not be off: an acknowledged write is on disk, whatever the
 * server's default.
 */
function buildSettings({ idleInTransactionMs = 0, lockMs = 0, byIndexOnly }: ConnectionOptions): string {
  // JIT compilation is off too: it would delay statements that look expensive.
  const disabledPlans = ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"];
  const planning = byIndexOnly
    ? `${disabledPlans.map((name) => `set ${name} = off;`).join(" ")} set plan_cache_mode = force_generic_plan;`
    : "";
  return `${planning}set search_path to ${schema};
    set idle_in_transaction_session_timeout = ${idleInTransactionMs};
    set tcp_user_timeout = ${idleInTransactionMs};
    set statement_timeout = 0;
    set default_transaction_isolation = 'read committed';
    set lock_timeout = ${lockMs};
    set client_min_messages = warning;
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`;
}
