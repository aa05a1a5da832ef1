import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type Agent, queries, type RunRow } from "../../data/queries.ts";
import { IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { summarizeRun } from "../../parts/run-table.tsx";
import { Status, getStatusLabel } from "../../parts/status.tsx";
import { Age } from "../../parts/time.tsx";
import { Composer } from "./composer.tsx";
import { toLineage } from "./lineage.ts";
import type { ChatSearch } from "./search.ts";
import { Thread } from "./thread.tsx";
import styles from "./page.module.css";

/**
 * A conversation is a session's runs in order. Each run of a procedural agent has its own session, so the chat of such an
 * agent shows its latest runs.
 */
export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as ChatSearch;
  const [listOpen, setListOpen] = useState(false);
  const agents = useQuery(queries.agents());
  const session = useQuery({ ...queries.session(search.session ?? ""), enabled: search.session !== undefined });
  const name = session.data?.agent_name ?? search.agent;
  const agent = agents.data?.find((candidate) => candidate.name === name) ?? null;
  const isProcedural = agent?.type === "procedural" && search.session === undefined;
  const latestRuns = useQuery({ ...queries.recentRuns({ agent_name: name ?? "" }, 10), enabled: isProcedural });
  const { inheritedRunIds, runIds: sessionRunIds, isComplete } = toLineage(session.data ?? null);
  const shownRunIds = isProcedural ? (latestRuns.data ?? []).map(({ run_id }) => run_id).toReversed() : sessionRunIds;
  useEffect(() => setListOpen(false), [search.session, search.agent]);
  return (
    <div className={styles["chat"]} data-listing={listOpen || undefined}>
      <ConversationList
        currentSessionId={search.session ?? null}
        currentAgentName={name ?? null}
        agents={agents.data ?? []}
      />
      <div className={styles["main"]}>
        <div className={styles["head"]}>
          <h1 className="visually-hidden">Chat</h1>
          <span className={styles["list"]}>
            <IconButton
              icon="menu"
              label="Conversations"
              aria-expanded={listOpen}
              onClick={() => setListOpen(!listOpen)}
            />
          </span>
          <AgentPicker agents={agents.data ?? []} name={name ?? null} />
          {search.session ? <span className="faint mono">{formatShortId(search.session)}</span> : null}
          {session.data?.forked_from ? (
            <Link className="dim row" to="/chat" search={{ session: session.data.forked_from }}>
              <Icon name="fork" small />
              <span>
                forked from <span className="mono">{formatShortId(session.data.forked_from)}</span>
              </span>
            </Link>
          ) : null}
        </div>
        <Thread
          key={`thread ${search.session ?? name ?? ""}`}
          agent={agent}
          inheritedRunIds={inheritedRunIds}
          run_ids={shownRunIds}
          isLoading={search.session !== undefined && session.isPending}
          forkableSessionId={
            isComplete && search.session !== undefined && agent?.type === "autonomous" ? search.session : null
          }
        />
        {agent ? (
          <Composer
            key={`composer ${search.session ?? agent.name}`}
            agent={agent}
            session_id={search.session ?? null}
            lastRunId={shownRunIds.at(-1) ?? null}
            fork={search.fork ?? null}
          />
        ) : null}
      </div>
    </div>
  );
}

function AgentPicker({ agents, name }: { agents: readonly Agent[]; name: string | null }) {
  const navigate = useNavigate();
  const agentTypes = new Map(agents.map((agent) => [agent.name, agent.type]));
  return (
    <select
      className={styles["picker"]}
      aria-label="Agent"
      value={name ?? ""}
      onChange={(event) => void navigate({ to: "/chat", search: { agent: event.target.value } })}
    >
      <option value="" disabled>
        Choose an agent
      </option>
      {(["autonomous", "procedural"] as const).map((type) => (
        <optgroup key={type} label={type}>
          {[...agentTypes]
            .sort(([a], [b]) => a.localeCompare(b))
            .filter(([, agentType]) => agentType === type)
            .map(([agentName]) => (
              <option key={agentName}>{agentName}</option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}

/** Conversations ordered by their latest run. All runs of a procedural agent that were started in a chat form one entry. */
function ConversationList({
  currentSessionId,
  currentAgentName,
  agents,
}: {
  currentSessionId: string | null;
  currentAgentName: string | null;
  agents: readonly Agent[];
}) {
  const runs = useQuery(queries.recentRuns({}, 200));
  const proceduralNames = new Set(agents.filter(({ type }) => type === "procedural").map(({ name }) => name));
  const conversations = new Map<string, { run: RunRow; search: ChatSearch; isCurrent: boolean }>();
  for (const run of runs.data ?? []) {
    const { session_id, agent_name } = run;
    const isProcedural = proceduralNames.has(agent_name);
    if (session_id === null || (isProcedural && run.trigger_type !== "chat")) continue;
    const key = isProcedural ? agent_name : session_id;
    if (!conversations.has(key))
      conversations.set(key, {
        run,
        search: isProcedural ? { agent: agent_name } : { session: session_id },
        isCurrent: isProcedural ? agent_name === currentAgentName : session_id === currentSessionId,
      });
  }
  return (
    <nav className={styles["conversations"]} aria-label="Conversations">
      <Link to="/chat" search={{}} activeOptions={{ exact: true, includeSearch: true }} className={styles["new"]}>
        <Icon name="plus" /> New conversation
      </Link>
      {[...conversations].slice(0, 30).map(([key, { run, search, isCurrent }]) => (
        <Link
          key={key}
          to="/chat"
          search={search}
          activeProps={{}}
          aria-current={isCurrent ? "page" : undefined}
          className={styles["conversation"]}
        >
          <Status status={run.status} iconOnly />
          <b>{run.agent_name}</b>
          <span className="faint">
            <Age at={run.created_at} />
          </span>
          <span className={`dim ellipsis ${styles["summary"]}`}>{summarizeRun(run) || getStatusLabel(run.status)}</span>
        </Link>
      ))}
    </nav>
  );
}
