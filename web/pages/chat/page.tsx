import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { type Agent, queries } from "../../data/queries.ts";
import { useRunEvents } from "../../data/run-events.ts";
import { Conversation } from "../../parts/conversation.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { shortId } from "../../parts/numbers.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { Composer } from "./composer.tsx";
import type { ChatSearch } from "./search.ts";
import styles from "./page.module.css";

/** A conversation is a session: its runs one after another. A procedural agent has none, so its latest runs are shown. */
export function Page() {
  // the route validates it
  const search = useSearch({ strict: false }) as ChatSearch;
  const agents = useQuery(queries.agents());
  const session = useQuery({ ...queries.session(search.session ?? ""), enabled: search.session !== undefined });
  const name = session.data?.agent_name ?? search.agent;
  const agent = agents.data?.find((one) => one.name === name) ?? null;
  const procedural = agent?.type === "procedural" && search.session === undefined;
  const latest = useQuery({ ...queries.someRuns({ agent_name: name ?? "" }, 10), enabled: procedural });
  const run_ids = (
    search.session === undefined
      ? (latest.data ?? []).map(({ run_id }) => run_id)
      : (session.data?.versions ?? []).map(({ run_id }) => run_id)
  ).toReversed();
  return (
    <div className={styles["chat"]}>
      <SessionList current={search.session ?? null} />
      <div className={styles["main"]}>
        <div className={styles["head"]}>
          <h1 className="hidden-visually">Chat</h1>
          <AgentPicker agents={agents.data ?? []} name={name ?? null} />
          {search.session ? <span className="faint mono">{shortId(search.session)}</span> : null}
          {session.data?.forked_from ? (
            <Link className="dim" to="/chat" search={{ session: session.data.forked_from }}>
              <Icon name="fork" small /> forked
            </Link>
          ) : null}
        </div>
        <Thread run_ids={procedural || search.session !== undefined ? run_ids : []} agent={agent} />
        {agent ? (
          <Composer
            key={search.session ?? agent.name}
            agent={agent}
            session_id={search.session ?? null}
            last={run_ids.at(-1) ?? null}
          />
        ) : null}
      </div>
    </div>
  );
}

function Thread({ run_ids, agent }: { run_ids: readonly string[]; agent: Agent | null }) {
  const box = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  useEffect(() => {
    const element = box.current!;
    const watch = new ResizeObserver(() => {
      if (stuck.current) element.scrollTop = element.scrollHeight;
    });
    watch.observe(element.firstElementChild!);
    return () => watch.disconnect();
  }, []);
  return (
    <div
      ref={box}
      className={styles["thread"]}
      tabIndex={0}
      role="log"
      aria-label="Conversation"
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) =>
        (stuck.current = scrollTop + clientHeight > scrollHeight - 60)
      }
    >
      <div className={styles["runs"]}>
        {run_ids.length === 0 ? (
          <Empty icon="chat" title={agent ? `Talk to ${agent.name}` : "Choose an agent"}>
            <p>
              {agent?.description ??
                "An autonomous agent answers in a conversation; a procedural one asks for its parameters and returns its result."}
            </p>
          </Empty>
        ) : (
          run_ids.map((run_id) => <OneRun key={run_id} run_id={run_id} />)
        )}
      </div>
    </div>
  );
}

function OneRun({ run_id }: { run_id: string }) {
  const run = useQuery(queries.run(run_id));
  const log = useRunEvents(run_id);
  if (run.data === undefined) return <Skeleton rows={2} />;
  return (
    <section aria-label={`Run ${shortId(run_id)}`}>
      <p className={styles["mark"]}>
        <Link to="/runs/$runId" params={{ runId: run_id }}>
          run <span className="mono">{shortId(run_id)}</span>
        </Link>
        <Ago at={run.data.created_at} suffix=" ago" />
      </p>
      <Conversation run={run.data} log={log} />
    </section>
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

function SessionList({ current }: { current: string | null }) {
  const runs = useQuery(queries.someRuns({}, 200));
  const seen = new Map<
    string,
    { agent: string; at: string; status: (typeof shown)[number]["status"]; summary: string | null }
  >();
  const shown = (runs.data ?? []).filter(({ session_id }) => session_id !== null);
  for (const { session_id, agent_name, created_at, status, summary } of shown)
    if (!seen.has(session_id!)) seen.set(session_id!, { agent: agent_name, at: created_at, status, summary });
  return (
    <nav className={styles["sessions"]} aria-label="Conversations">
      <Link to="/chat" search={{}} activeOptions={{ exact: true, includeSearch: true }} className={styles["new"]}>
        <Icon name="plus" /> New conversation
      </Link>
      {[...seen].slice(0, 30).map(([session_id, { agent, at, status, summary }]) => (
        <Link
          key={session_id}
          to="/chat"
          search={{ session: session_id }}
          aria-current={session_id === current ? "page" : undefined}
          className={styles["session"]}
        >
          <Status status={status} iconOnly />
          <b>{agent}</b>
          <span className="faint">
            <Ago at={at} />
          </span>
          <span className={`dim ellipsis ${styles["summary"]}`}>{summary ?? "…"}</span>
        </Link>
      ))}
    </nav>
  );
}
