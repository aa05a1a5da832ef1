import type { Agent } from "../model/agent.ts";
import { type AgentPosition, compareAgentPositions, toAgentPosition } from "../model/agent-position.ts";
import type { ListedAgent, RunnerRow } from "../model/dispatch-ops.ts";
import { estimateJsonSize } from "../model/event-size.ts";
import type { NewSchedule } from "../model/schedule.ts";
import type { Store } from "../model/store.ts";

/** Finds and lists the agents that are defined in files, created through the API or offered by runners. */
export interface AgentRegistry {
  /**
   * Returns at most `limit` agents, fewer if they are large, sorted by name, then by precedence. `next` is the start of
   * the next page, or null after the last one.
   */
  page(page: { after?: AgentPosition; limit: number }): Promise<{ items: ListedAgent[]; next: AgentPosition | null }>;
  /** Returns a few thousand names at most, for "did you mean" suggestions. */
  names(): Promise<string[]>;
  /**
   * Accepts `agent` or `agent@runner`, with the id or the name of the runner. Returns `candidates` if several agents
   * match.
   */
  find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
  put(agent: Agent, by: string): Promise<void>;
  /** Returns false if the API has created no agent of that name. */
  remove(name: string): Promise<boolean>;
  /** Sets the agents from the files in the coordinator's directory. `errors` has the error of each file that has become invalid. */
  setFileAgents(agents: readonly Agent[], errors?: ReadonlyMap<string, string>): void;
  /** Sets the agents of the runner in this process. Other processes cannot use them. Of several with one name, the first counts. */
  setLocal(agents: readonly Agent[]): void;
}

/** `buildSchedules` returns the schedules that an agent defines. They are stored together with the agent. */
export function createAgentRegistry(
  store: Pick<Store, "apply" | "read">,
  buildSchedules: (agent: Agent, by: string) => NewSchedule[] = () => [],
): AgentRegistry {
  let files = new Map<string, ListedAgent>();
  let localAgents = new Map<string, ListedAgent>();

  return {
    async page(page) {
      const stored = await store.read.agent_page(page);
      const end = stored.items.at(-1);
      const until = stored.more && end !== undefined ? toAgentPosition(end) : null;
      const unstored = [...files.values(), ...localAgents.values()].filter((listed) => {
        const position = toAgentPosition(listed);
        if (page.after !== undefined && compareAgentPositions(position, page.after) <= 0) return false;
        return until === null || compareAgentPositions(position, until) < 0;
      });
      const all = [...unstored, ...stored.items];
      all.sort((a, b) => compareAgentPositions(toAgentPosition(a), toAgentPosition(b)));
      const items = all.slice(0, Math.min(countFitting(all), page.limit));
      const last = items.at(-1);
      const isLast = items.length === all.length && !stored.more;
      return { items, next: isLast || last === undefined ? null : toAgentPosition(last) };
    },
    async names() {
      return [...files.keys(), ...localAgents.keys(), ...(await store.read.agent_names(maxNames))];
    },
    async find(query) {
      const separator = query.lastIndexOf("@");
      if (separator > 0) return findOnRunner(query.slice(0, separator), query.slice(separator + 1));
      const file = files.get(query);
      if (file !== undefined) return file;
      const matches = await store.read.agents(query);
      const fromApi = matches.find(({ source }) => source === "api");
      return fromApi ?? localAgents.get(query) ?? pickOnly(matches);
    },
    async put(agent, by) {
      const schedules = buildSchedules(agent, by);
      await store.apply([
        { op: "put_agent", agent, by },
        { op: "sync_schedules", source: "agent", agents: [agent.name], schedules },
      ]);
    },
    async remove(name) {
      const [removed] = await store.apply([
        { op: "delete_agent", name },
        { op: "sync_schedules", source: "agent", agents: [name], schedules: [] },
      ]);
      return removed.ok;
    },
    setFileAgents(agents, errors) {
      files = new Map(
        agents.map((agent) => {
          const error = errors?.get(agent.name) ?? null;
          return [agent.name, { agent, source: "file", runner_id: null, owner: null, fault: error }];
        }),
      );
    },
    setLocal(agents) {
      localAgents = new Map(
        agents
          .toReversed() // The first of several agents with one name counts.
          .map((agent) => [agent.name, { agent, source: "runner", runner_id: null, owner: null, fault: null }]),
      );
    },
  };

  async function findOnRunner(
    name: string,
    runner: string,
  ): Promise<ListedAgent | { candidates: ListedAgent[] } | null> {
    const matches = (await store.read.agents(name)).filter(({ source }) => source === "runner");
    const byId = matches.find(({ runner_id }) => runner_id === runner);
    if (byId !== undefined) return byId;
    const rows = await Promise.all(matches.map(({ runner_id }) => store.read.runner(runner_id ?? "")));
    return pickOnly(matches.filter((_, index) => hasName(rows[index] ?? null, runner)));
  }
}

const maxNames = 5000;
/** Maximum size of one page as JSON, in characters. */
const maxPageLength = 512 * 1024;

/** Returns how many agents fit on a page, at least one. */
function countFitting(agents: readonly ListedAgent[]): number {
  let remaining = maxPageLength;
  const end = agents.findIndex(({ agent }, index) => (remaining -= estimateJsonSize(agent)) < 0 && index > 0);
  return end < 0 ? agents.length : end;
}

function hasName(row: RunnerRow | null, name: string): boolean {
  return row?.name === name || row?.hostname === name;
}

function pickOnly(matches: ListedAgent[]): ListedAgent | { candidates: ListedAgent[] } | null {
  if (matches.length > 1) return { candidates: matches };
  return matches[0] ?? null;
}
