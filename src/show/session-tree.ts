import type { Session, SessionNode, SessionReads } from "../model/session.ts";

/** Sessions beside the one that is asked for, each of which costs some reads. */
const mostNodes = 100;
/** Of each, its newest. */
const mostRuns = 100;

export interface SessionTree {
  /** What it was forked from, the oldest first. */
  ancestors: SessionNode[];
  /** What was forked from it, and from that: a parent before its forks. */
  descendants: SessionNode[];
}

/** `only`: whose sessions the asker sees; null for all. */
export async function sessionTree(
  read: Pick<SessionReads, "session" | "forks" | "versions">,
  session: Session,
  only: string | null,
): Promise<SessionTree> {
  const isSeen = ({ created_by }: Session): boolean => only === null || created_by === only;
  const ancestors: Session[] = [];
  for (let at = session; at.forked_from !== null && ancestors.length < mostNodes;) {
    const parent = await read.session(at.forked_from);
    if (parent === null || !isSeen(parent)) break;
    ancestors.unshift(parent);
    at = parent;
  }
  const descendants: Session[] = [];
  for (const parent of withFound(session, descendants)) {
    const left = mostNodes - ancestors.length - descendants.length;
    if (left <= 0) break;
    descendants.push(...(await read.forks(parent.session_id, left)).filter(isSeen));
  }
  const nodes = (sessions: Session[]): Promise<SessionNode[]> =>
    Promise.all(sessions.map((each) => nodeOf(read, each)));
  return { ancestors: await nodes(ancestors), descendants: await nodes(descendants) };
}

/** The session, then those that are found meanwhile. */
function* withFound(session: Session, found: readonly Session[]): Iterable<Session> {
  yield session;
  for (let at = 0; at < found.length; at += 1) yield found[at]!;
}

async function nodeOf(read: Pick<SessionReads, "versions">, session: Session): Promise<SessionNode> {
  const { session_id, agent_name, created_by, forked_from, fork_at_turn, run_count, created_at, last_used_at } =
    session;
  const versions = await read.versions(session_id);
  const runs = versions.slice(0, mostRuns).map(({ run_id, mode, status }) => ({ run_id, mode, status }));
  return { session_id, agent_name, created_by, forked_from, fork_at_turn, run_count, created_at, last_used_at, runs };
}
