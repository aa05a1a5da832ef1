import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { type Agent, queries } from "../../data/queries.ts";
import { useRunnerNames } from "../../data/runner-names.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import styles from "./page.module.css";

const RunDialog = lazy(async () => ({ default: (await import("../../parts/run-dialog.tsx")).RunDialog }));

export function Page() {
  const agents = useQuery(queries.agents());
  const me = useQuery(queries.me());
  const [search, setSearch] = useState("");
  const [asked, setAsked] = useState<Agent | null>(null);
  const navigate = useNavigate();
  const wanted = search.toLowerCase();
  const shown = (agents.data ?? [])
    .filter(({ name, description, title }) =>
      `${name} ${title ?? ""} ${description ?? ""}`.toLowerCase().includes(wanted),
    )
    .sort((one, other) => one.name.localeCompare(other.name));
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 12 }}>
        <h1>Agents</h1>
        <input
          className={styles["search"]}
          type="search"
          aria-label="Find an agent"
          placeholder="Find an agent"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <span className="push">
          <Button
            look="primary"
            icon="plus"
            disabledBecause={me.data?.role === "admin" ? null : "Only an admin can create agents"}
            onClick={() => void navigate({ to: "/agents/new" })}
          >
            New agent
          </Button>
        </span>
      </div>
      {agents.isError ? <ErrorNote error={agents.error} /> : null}
      {agents.isPending ? (
        <Skeleton />
      ) : shown.length === 0 ? (
        <Card flush>
          <Empty icon="agents" title={search === "" ? "No agents yet" : "No agent matches"}>
            <p>Create a small project with a working agent:</p>
            <Command text="drover init" />
          </Empty>
        </Card>
      ) : (
        <ul className={styles["grid"]}>
          {shown.map((agent) => (
            <AgentCard key={`${agent.name}@${agent.runner_id ?? ""}`} agent={agent} run={() => setAsked(agent)} />
          ))}
        </ul>
      )}
      <Suspense>{asked ? <RunDialog agent={asked} onClose={() => setAsked(null)} /> : null}</Suspense>
    </>
  );
}

function AgentCard({ agent, run }: { agent: Agent; run: () => void }) {
  const nameOf = useRunnerNames();
  const from = { file: "from a file", api: "created here", runner: `from ${nameOf(agent.runner_id)}` }[agent.source];
  return (
    <li className={styles["card"]}>
      <div className="row">
        <Link to="/agents/$name" params={{ name: agent.name }} className={styles["name"]}>
          {agent.name}
        </Link>
        <span className={styles["type"]}>{agent.type}</span>
        <span className={styles["run"]}>
          <Button icon="runs" onClick={run} aria-label={`Run ${agent.name}`}>
            Run
          </Button>
        </span>
      </div>
      <p className={styles["about"]}>
        {agent.description ?? agent.title ?? <span className="faint">No description</span>}
      </p>
      {agent.fault ? (
        <p className={styles["fault"]}>
          <Icon name="warn" small /> {agent.fault}
        </p>
      ) : null}
      <p className="faint ellipsis">
        {agent.command ? (
          <span className="mono">{agent.command}</span>
        ) : (
          (agent.model ?? agent.executor ?? "any executor")
        )}{" "}
        · {from}
      </p>
    </li>
  );
}
