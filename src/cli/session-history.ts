import { RequestError } from "../model/errors.ts";
import type { Session, SessionVersion } from "../model/session.ts";
import type { Store } from "../model/store.ts";
import { fromCursor, toCursor } from "../show/cursor.ts";
import type { Client } from "../wire/client.ts";
import { usage } from "./options.ts";

/** The sessions of this place: of the coordinator where one answers, else of the store. */
export interface SessionHistory {
  list(filter: { agent_name?: string }, limit: number, cursor?: string): Promise<Page>;
  get(session_id: string): Promise<ShownSession | null>;
  /** Its runs stay. Refused while one of them is active. */
  remove(session_id: string): Promise<void>;
}

export type ShownSession = Session & { versions: SessionVersion[] };

interface Page {
  items: Session[];
  next_cursor: string | null;
}

/** A session by its id or the beginning of it, where only one begins so. */
export async function findSession(sessions: SessionHistory, id: string): Promise<ShownSession> {
  const matches = /^[0-9a-f-]{4,36}$/.test(id) ? await idsBeginning(sessions, id) : [];
  const session = matches.length === 1 ? await sessions.get(matches[0]!) : null;
  if (session) return session;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "SESSION",
    message:
      matches.length > 1
        ? `More than one session begins with ${id}: ${matches.join(", ")}.`
        : `There is no session ${id} here.`,
    next: "`drover sessions list` shows the sessions.",
  });
}

/** As for runs: no character of an id is greater than "f". */
async function idsBeginning(sessions: SessionHistory, prefix: string): Promise<string[]> {
  const { items } = await sessions.list({}, 3, toCursor("sessions", `${prefix}g`));
  return items.map(({ session_id }) => session_id).filter((session_id) => session_id.startsWith(prefix));
}

export function sessionsOverHttp(client: Client): SessionHistory {
  return {
    list: (filter, limit, cursor) => client.sessions.list({ ...filter, limit, ...(cursor ? { cursor } : {}) }),
    get: (session_id) => client.sessions.get(session_id),
    remove: (session_id) => client.sessions.remove(session_id),
  };
}

export function sessionsInStore(store: Pick<Store, "read" | "apply">): SessionHistory {
  return {
    async list(filter, limit, cursor) {
      const before = cursor === undefined ? null : fromCursor("sessions", cursor);
      if (cursor !== undefined && before === null)
        throw usage(`--cursor ${cursor} is not one that a list printed.`, "sessions list", "--cursor");
      const items = await store.read.sessions(filter, { limit, ...(before === null ? {} : { before }) });
      return { items, next_cursor: items.length === limit ? toCursor("sessions", items.at(-1)!.session_id) : null };
    },
    async get(session_id) {
      const session = await store.read.session(session_id);
      return session && { ...session, versions: await store.read.versions(session_id) };
    },
    async remove(session_id) {
      const [removed] = await store.apply([{ op: "delete_session", session_id }]);
      if (removed.ok || removed.conflict !== "busy") return;
      throw new RequestError({
        code: "DROVER-API-030",
        field: "SESSION",
        message: "A run of this session is still active.",
        next: "Stop it first: drover runs stop RUN",
      });
    },
  };
}
