import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type Agent, queries, type RunRow } from "../../data/queries.ts";
import { IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { shortId } from "../../parts/numbers.ts";
import { summaryOf } from "../../parts/run-table.tsx";
import { Status, statusWord } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { Composer } from "./composer.tsx";
import { lineageOf } from "./lineage.ts";
import type { ChatSearch } from "./search.ts";
import { Thread } from "./thread.tsx";
import styles from "./page.module.css";

/** A conversation is a session's runs in order. Procedural agents have no sessions, so their latest runs are shown. */
export function Page() {
  // The route validates the search parameters.
  const search = useSearch({ strict: false }) as ChatSearch;
  const [listing, setListing] = useState(false);
  const agents = useQuery(queries.agents());
  const session = useQuery({ ...queries.session(search.session ?? ""), enabled: search.session !== undefined });
  const name = session.data?.agent_name ?? search.agent;
  const agent = agents.data?.find((one) => one.name === name) ?? null;
  const procedural = agent?.type === "procedural" && search.session === undefined;
  const latest = useQuery({ ...queries.someRuns({ agent_name: name ?? "" }, 10), enabled: procedural });
  const { inherited, own, complete } = lineageOf(session.data ?? null);
  const run_ids = procedural ? (latest.data ?? []).map(({ run_id }) => run_id).toReversed() : own;
  useEffect(() => setListing(false), [search.session, search.agent]);
  return (
    <div className={styles["chat"]} data-listing={listing || undefined}>
      <SessionList current={search.session ?? null} agent={name ?? null} agents={agents.data ?? []} />
      <div className={styles["main"]}>
        <div className={styles["head"]}>
          <h1 className="hidden-visually">Chat</h1>
          <span className={styles["list"]}>
            <IconButton
              icon="menu"
              label="Conversations"
              aria-expanded={listing}
              onClick={() => setListing(!listing)}
            />
          </span>
          <AgentPicker agents={agents.data ?? []} name={name ?? null} />
          {search.session ? <span className="faint mono">{shortId(search.session)}</span> : null}
          {session.data?.forked_from ? (
            <Link className="dim row" to="/chat" search={{ session: session.data.forked_from }}>
              <Icon name="fork" small />
              <span>
                forked from <span className="mono">{shortId(session.data.forked_from)}</span>
              </span>
            </Link>
          ) : null}
        </div>
        <Thread
          key={`thread ${search.session ?? name ?? ""}`}
          agent={agent}
          inherited={inherited}
          run_ids={run_ids}
          loading={search.session !== undefined && session.isPending}
          forkable={complete && search.session !== undefined && agent?.type === "autonomous" ? search.session : null}
        />
        {agent ? (
          <Composer
            key={`composer ${search.session ?? agent.name}`}
            agent={agent}
            session_id={search.session ?? null}
            last={run_ids.at(-1) ?? null}
            fork={search.fork ?? null}
          />
        ) : null}
      </div>
    </div>
  );
}

function AgentPicker({ agents, name }: { agents: readonly Agent[]; name: string | null }) {
  const navigate = useNavigate();
  const names = [...new Map(agents.map((one) => [one.name, one.type]))].sort(([one], [other]) =>
    one.localeCompare(other),
  );
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
          {names
            .filter(([, one]) => one === type)
            .map(([one]) => (
              <option key={one}>{one}</option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}

/** Conversations ordered by their latest run. All runs of a procedural agent form one entry. */
function SessionList({
  current,
  agent,
  agents,
}: {
  current: string | null;
  agent: string | null;
  agents: readonly Agent[];
}) {
  const runs = useQuery(queries.someRuns({}, 200));
  const procedural = new Set(agents.filter(({ type }) => type === "procedural").map(({ name }) => name));
  const listed = new Map<string, { run: RunRow; search: ChatSearch; isCurrent: boolean }>();
  for (const run of runs.data ?? []) {
    const { session_id, agent_name } = run;
    if (session_id === null) continue;
    const isOne = procedural.has(agent_name);
    const key = isOne ? agent_name : session_id;
    if (!listed.has(key))
      listed.set(key, {
        run,
        search: isOne ? { agent: agent_name } : { session: session_id },
        isCurrent: isOne ? agent_name === agent : session_id === current,
      });
  }
  return (
    <nav className={styles["sessions"]} aria-label="Conversations">
      <Link to="/chat" search={{}} activeOptions={{ exact: true, includeSearch: true }} className={styles["new"]}>
        <Icon name="plus" /> New conversation
      </Link>
      {[...listed].slice(0, 30).map(([key, { run, search, isCurrent }]) => (
        <Link
          key={key}
          to="/chat"
          search={search}
          activeProps={{}}
          aria-current={isCurrent ? "page" : undefined}
          className={styles["session"]}
        >
          <Status status={run.status} iconOnly />
          <b>{run.agent_name}</b>
          <span className="faint">
            <Ago at={run.created_at} />
          </span>
          <span className={`dim ellipsis ${styles["summary"]}`}>{summaryOf(run) || statusWord(run.status)}</span>
        </Link>
      ))}
    </nav>
  );
}
