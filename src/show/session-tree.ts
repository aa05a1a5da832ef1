import type { Session, SessionNode, SessionReads } from "../model/session.ts";

/** How many sessions are returned besides the requested one. Each needs several reads. */
const maxSessions = 100;
/** How many runs are returned per session, newest first. */
const maxRunsPerSession = 100;

export interface SessionTree {
  /** The sessions it was forked from, oldest first. */
  ancestors: SessionNode[];
  /** The sessions forked from it, directly or indirectly. A parent comes before its forks. */
  descendants: SessionNode[];
}

/** `owner` is the user whose sessions the caller may see. null means all. */
export async function readSessionTree(
  read: Pick<SessionReads, "session" | "forks" | "versions">,
  session: Session,
  owner: string | null,
): Promise<SessionTree> {
  const isVisible = ({ created_by }: Session): boolean => owner === null || created_by === owner;
  const ancestors: Session[] = [];
  for (let current = session; current.forked_from !== null && ancestors.length < maxSessions;) {
    const parent = await read.session(current.forked_from);
    if (parent === null || !isVisible(parent)) break;
    ancestors.unshift(parent);
    current = parent;
  }
  const descendants: Session[] = [];
  for (const parent of iterateTree(session, descendants)) {
    const remaining = maxSessions - ancestors.length - descendants.length;
    if (remaining <= 0) break;
    descendants.push(...(await read.forks(parent.session_id, remaining)).filter(isVisible));
  }
  const readNodes = (sessions: Session[]): Promise<SessionNode[]> =>
    Promise.all(sessions.map((node) => readNode(read, node)));
  return { ancestors: await readNodes(ancestors), descendants: await readNodes(descendants) };
}

/** Yields the session, then the sessions added to `descendants` during the iteration. */
function* iterateTree(session: Session, descendants: readonly Session[]): Iterable<Session> {
  yield session;
  for (let index = 0; index < descendants.length; index += 1) yield descendants[index]!;
}

async function readNode(read: Pick<SessionReads, "versions">, session: Session): Promise<SessionNode> {
  const { session_id, agent_name, created_by, forked_from, fork_at_turn, run_count, created_at, last_used_at } =
    session;
  const versions = await read.versions(session_id);
  const runs = versions.slice(0, maxRunsPerSession).map(({ run_id, mode, status }) => ({ run_id, mode, status }));
  return { session_id, agent_name, created_by, forked_from, fork_at_turn, run_count, created_at, last_used_at, runs };
}
