import { Socket } from "node:net";
import pg from "pg";
import { BugError } from "../../model/errors.ts";
import type { Query, Row } from "../query.ts";
import { prepared } from "./dialect.ts";

/** Everything of ours lies in a schema of its own: a database may be shared with other programs. */
export const schema = "drover";

export interface Client {
  /** Waits for what a query gives; one that gives nothing is only sent, and `settled` tells how it went. */
  query(query: Query): Promise<Row[]>;
  /** Several statements in one message, without values: what the last of them with rows gave. */
  exec(text: string): Promise<Row[]>;
  /** Resolves once everything that was sent is done; throws the first fault of it. */
  settled(): Promise<void>;
  quoted(text: string): string;
  onNotice(listener: (channel: string, payload: string) => void): void;
  readonly broken: boolean;
  end(): void;
}

interface ClientOptions {
  /**
   * Ends a transaction of ours that stands still, as it would hold up everybody else; also one that does not fetch what
   * the server has for it.
   */
  idleInTransactionMs?: number;
  /** How long a lock that somebody else has is waited for; for ever unless given. */
  lockMs?: number;
  /**
   * Every statement finds its few rows by an index, however large the tables are and however little the server
   * knows of them yet: what it would guess otherwise depends on when it last looked.
   */
  byIndexOnly?: true;
  /** After which a server that says nothing is taken to be gone, and the connection with it. */
  answerMs?: number;
  /** Called once, where the connection breaks before it was ended by us. */
  onBroken?(fault: unknown): void;
}

const connectMs = 5000;
const muchBytes = 32 * 1024;
const goodbyeMs = 1000;
const { types } = pg;
const { BOOL, INT8, NUMERIC } = types.builtins;

/** As SQLite gives them: truth is 1 or 0, and our integers all fit into a number. */
type TypeId = Parameters<typeof types.getTypeParser>[0];
const parsers = new Map<TypeId, (text: string) => number>([
  [BOOL, (text) => (text === "t" ? 1 : 0)],
  [INT8, Number],
  [NUMERIC, Number],
]);

/** One connection. Statements are sent as they come, without waiting for each other's answers. */
export async function connect(url: string, options: ClientOptions = {}): Promise<Client> {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url,
    stream: () => socket,
    pipeline: true,
    connectionTimeoutMillis: connectMs,
    ...(options.answerMs === undefined ? {} : { query_timeout: options.answerMs }),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: "drover",
    types: { getTypeParser: (oid: TypeId, format) => parsers.get(oid) ?? types.getTypeParser(oid, format) },
  });
  let broken = false;
  let ending = false;
  let gathering = false;
  const pending = new Set<Promise<unknown>>();
  let fault: unknown = null;
  const breaks = (cause: unknown): void => {
    if (broken || ending) return;
    broken = true;
    options.onBroken?.(cause);
  };
  client.on("error", breaks);
  client.on("end", () => breaks(new Error("the connection was closed")));
  await client.connect();
  await client.query(settings(options));
  return {
    get broken() {
      return broken;
    },
    query({ text, values, gives }) {
      sendTogether();
      const sent = client.query({ ...prepared(text), values: values as unknown[] });
      if (gives !== "none") return sent.then(({ rows }) => rows as Row[]);
      note(sent);
      return nothing;
    },
    async exec(text) {
      sendTogether();
      const given: unknown = await client.query(text);
      const results = (Array.isArray(given) ? given : [given]) as { rows: Row[]; command: string }[];
      // PostgreSQL takes the commit of a transaction that has failed for a rollback, and calls that no fault.
      if (text.endsWith("commit") && results.at(-1)?.command !== "COMMIT")
        throw new BugError("a transaction that had failed was committed");
      return results.findLast(({ rows }) => rows.length > 0)?.rows ?? [];
    },
    async settled() {
      await Promise.all(pending);
      const first = fault;
      fault = null;
      if (first !== null) throw first;
    },
    quoted: (text) => client.escapeLiteral(text),
    onNotice: (listener) => void client.on("notification", ({ channel, payload }) => listener(channel, payload ?? "")),
    end() {
      ending = true;
      // A server that is in the midst of a statement, or says nothing, does not hear a goodbye.
      const late = setTimeout(() => socket.destroy(), goodbyeMs).unref();
      socket.once("close", () => clearTimeout(late));
      client.end().catch(() => undefined); // it is being left either way
    },
  };

  /** What is asked in one turn of the event loop goes out in one piece, unless it is so much that it had better be on its way. */
  function sendTogether(): void {
    if (gathering && socket.writableLength > muchBytes) {
      socket.uncork();
      socket.cork();
    }
    if (gathering) return;
    gathering = true;
    socket.cork();
    process.nextTick(() => {
      gathering = false;
      socket.uncork();
    });
  }

  function note(sent: Promise<unknown>): void {
    const noted: Promise<void> = sent.then(
      () => void pending.delete(noted),
      (cause: unknown) => {
        pending.delete(noted);
        fault ??= cause;
      },
    );
    pending.add(noted);
  }
}

const nothing: Promise<Row[]> = Promise.resolve([]);

/** What was answered must be on disk, whatever the server's default says. */
function settings({ idleInTransactionMs = 0, lockMs = 0, byIndexOnly }: ClientOptions): string {
  // and what seems dear is not compiled first
  const otherWays = ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"];
  const planning = byIndexOnly
    ? `${otherWays.map((name) => `set ${name} = off;`).join(" ")} set plan_cache_mode = force_generic_plan;`
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
