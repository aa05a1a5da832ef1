import type { Output } from "../wire/contracts.ts";

type SessionDetails = Output<"GET /sessions/{session_id}">;
type Node = Pick<SessionDetails["descendants"][number], "session_id" | "forked_from" | "fork_at_turn" | "run_count">;

/** Formats the tree of forks around a session. Returns no lines if the session has no forks and is not a fork. */
export function formatTree(session: SessionDetails): string[] {
  const nodes: Node[] = [...session.ancestors, session, ...session.descendants];
  const [root] = nodes;
  if (nodes.length === 1 || root === undefined) return [];
  const lines: string[] = [];
  const addNode = (node: Node, indent: string, branch: string, childIndent: string): void => {
    const turnNote = node.fork_at_turn === null ? "" : ` at turn ${node.fork_at_turn}`;
    const forkNote = node === root ? "" : `, forked${turnNote}`;
    const currentNote = node.session_id === session.session_id ? "  <- this session" : "";
    const runs = node.run_count === 1 ? "1 run" : `${node.run_count} runs`;
    lines.push(`${indent}${branch}${node.session_id} (${runs}${forkNote})${currentNote}`);
    const forks = nodes.filter(({ forked_from }) => forked_from === node.session_id);
    for (const [index, fork] of forks.entries()) {
      const isLast = index === forks.length - 1;
      addNode(fork, indent + childIndent, isLast ? "└─ " : "├─ ", isLast ? "   " : "│  ");
    }
  };
  addNode(root, "", "", "");
  return lines;
}
