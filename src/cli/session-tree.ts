import type { Output } from "../wire/contracts.ts";

type Shown = Output<"GET /sessions/{session_id}">;
type Node = Pick<Shown["descendants"][number], "session_id" | "forked_from" | "fork_at_turn" | "run_count">;

/** The tree of forks around a session as lines. Empty if it has no forks and is not a fork. */
export function treeLines(session: Shown): string[] {
  const nodes: Node[] = [...session.ancestors, session, ...session.descendants];
  const [root] = nodes;
  if (nodes.length === 1 || root === undefined) return [];
  const lines: string[] = [];
  const add = (node: Node, before: string, branch: string, below: string): void => {
    const at = node.fork_at_turn === null ? "" : ` at turn ${node.fork_at_turn}`;
    const forked = node === root ? "" : `, forked${at}`;
    const here = node.session_id === session.session_id ? "  <- this session" : "";
    const runs = node.run_count === 1 ? "1 run" : `${node.run_count} runs`;
    lines.push(`${before}${branch}${node.session_id} (${runs}${forked})${here}`);
    const forks = nodes.filter(({ forked_from }) => forked_from === node.session_id);
    for (const [index, fork] of forks.entries()) {
      const isLast = index === forks.length - 1;
      add(fork, before + below, isLast ? "└─ " : "├─ ", isLast ? "   " : "│  ");
    }
  };
  add(root, "", "", "");
  return lines;
}
