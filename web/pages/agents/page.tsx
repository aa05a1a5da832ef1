import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { type Agent, queries } from "../../data/queries.ts";
import { useRunnerNames } from "../../data/runner-names.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import styles from "./page.module.css";

const RunDialog = lazy(async () => ({ default: (await import("../../parts/run-dialog.tsx")).RunDialog }));

export function Page() {
  const agents = useQuery(queries.agents());
  const me = useQuery(queries.me());
  const [search, setSearch] = useState("");
  const [agentToRun, setAgentToRun] = useState<Agent | null>(null);
  const navigate = useNavigate();
  const searchText = search.toLowerCase();
  const visibleAgents = (agents.data ?? [])
    .filter(({ name, description, title }) =>
      `${name} ${title ?? ""} ${description ?? ""}`.toLowerCase().includes(searchText),
    )
    .sort((a, b) => a.name.localeCompare(b.name));
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
            variant="primary"
            icon="plus"
            disabledReason={me.data?.role === "admin" ? null : "Only an admin can create agents"}
            onClick={() => void navigate({ to: "/agents/new" })}
          >
            New agent
          </Button>
        </span>
      </div>
      {agents.isError ? <ErrorNote error={agents.error} /> : null}
      {agents.isPending ? (
        <Skeleton />
      ) : agents.isError && agents.data === undefined ? null : visibleAgents.length === 0 ? (
        <Card flush>
          {search === "" ? (
            <EmptyState icon="agents" title="No agents yet">
              <p>Create a small project with a working agent:</p>
              <Command text="drover init" />
            </EmptyState>
          ) : (
            <EmptyState icon="agents" title="No agent matches">
              <Button onClick={() => setSearch("")}>Show all agents</Button>
            </EmptyState>
          )}
        </Card>
      ) : (
        <ul className={styles["grid"]}>
          {visibleAgents.map((agent) => (
            <AgentCard
              key={`${agent.name}@${agent.runner_id ?? ""}`}
              agent={agent}
              onRun={() => setAgentToRun(agent)}
            />
          ))}
        </ul>
      )}
      <Suspense>{agentToRun ? <RunDialog agent={agentToRun} onClose={() => setAgentToRun(null)} /> : null}</Suspense>
    </>
  );
}

function AgentCard({ agent, onRun }: { agent: Agent; onRun: () => void }) {
  const getRunnerName = useRunnerNames();
  const origin = {
    file: "from a file",
    api: "created through the API",
    runner: `from ${getRunnerName(agent.runner_id)}`,
  }[agent.source];
  return (
    <li className={styles["card"]}>
      <div className="row">
        <Link to="/agents/$name" params={{ name: agent.name }} className={styles["name"]}>
          {agent.name}
        </Link>
        <span className={styles["type"]}>{agent.type}</span>
        <span className={styles["run"]}>
          <Button icon="runs" onClick={onRun} aria-label={`Run ${agent.name}`}>
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
        · {origin}
      </p>
    </li>
  );
}
