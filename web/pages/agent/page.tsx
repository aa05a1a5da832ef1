import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../data/client.ts";
import { useReadOnlyReason } from "../../data/read-only-reason.ts";
import { type Agent, queries, queryClient } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Code } from "../../parts/code.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { JsonTree } from "../../parts/json-tree.tsx";
import { RunForm } from "../../parts/run-form.tsx";
import { RunTable } from "../../parts/run-table.tsx";
import { ScheduleTable } from "../../parts/schedule-table.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { Editor } from "./editor.tsx";
import formStyles from "../../parts/form.module.css";
import styles from "./page.module.css";

export function Page() {
  const { name = "" } = useParams({ strict: false });
  const agents = useQuery(queries.agents());
  const agent = agents.data?.find((candidate) => candidate.name === name);
  if (agents.isPending) return <Skeleton />;
  if (agents.isError) return <ErrorNote error={agents.error} />;
  if (agent === undefined)
    return (
      <Card title={`The agent ${name} does not exist`}>
        <Link to="/agents">Show all agents</Link>
      </Card>
    );
  return <AgentPage key={agent.name} agent={agent} />;
}

function AgentPage({ agent }: { agent: Agent }) {
  const [isEditing, setIsEditing] = useState(false);
  const navigate = useNavigate();
  const me = useQuery(queries.me());
  const runs = useQuery(queries.recentRuns({ agent_name: agent.name }, 10));
  const readOnlyReason =
    agent.source === "file"
      ? "A file defines this agent. Edit the file instead."
      : agent.source === "runner"
        ? "A runner provides this agent. Edit it on that runner."
        : me.data?.role === "admin"
          ? null
          : "Only an admin can change agents.";
  const remove = (): void =>
    void api.agents.remove(agent.name).then(async () => {
      await queryClient.invalidateQueries({ queryKey: ["agents"] });
      toast(`Deleted ${agent.name}`, "Its runs keep their copy of the agent.");
      await navigate({ to: "/agents" });
    }, toastError);
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 4 }}>
        <h1>{agent.name}</h1>
        <span className={styles["type"]}>{agent.type}</span>
        <span className="row push">
          <Button icon="edit" disabledReason={readOnlyReason} onClick={() => setIsEditing(true)}>
            Edit
          </Button>
          <Button variant="danger" icon="trash" disabledReason={readOnlyReason} onClick={remove}>
            Delete
          </Button>
        </span>
      </div>
      <p className="dim" style={{ marginBottom: 12 }}>
        {agent.description ?? agent.title ?? "No description"}
      </p>
      {isEditing ? (
        <Editor agent={agent} onDone={() => setIsEditing(false)} />
      ) : (
        <div className={styles["panes"]}>
          <Card title="Run">
            <RunForm
              agent={agent}
              onStarted={(run) => void navigate({ to: "/runs/$runId", params: { runId: run.run_id } })}
            >
              {(busy) => (
                <div className={formStyles["foot"]}>
                  <Button variant="primary" icon="runs" type="submit" disabled={busy}>
                    Run
                  </Button>
                </div>
              )}
            </RunForm>
          </Card>
          <Card title="Definition">
            <div className="stack tight">
              {agent.command ? <Code text={agent.command} label="Command" /> : null}
              {typeof agent.system_prompt === "string" ? (
                <Code text={agent.system_prompt} label="System prompt" />
              ) : null}
              <JsonTree value={getOtherFields(agent)} />
            </div>
          </Card>
        </div>
      )}
      <Schedules agent={agent} />
      <div style={{ marginTop: 16 }}>
        <Card
          title="Recent runs"
          note={
            <Link to="/runs" search={{ agent: agent.name }}>
              show all
            </Link>
          }
          flush
        >
          {runs.data && runs.data.length > 0 ? (
            <RunTable runs={runs.data} label={`Runs of ${agent.name}`} />
          ) : (
            <p className="faint" style={{ padding: 14 }}>
              No runs yet.
            </p>
          )}
        </Card>
      </div>
    </>
  );
}

/** The agent's schedules from its file, the command line and the dashboard. */
function Schedules({ agent }: { agent: Agent }) {
  const query = useInfiniteQuery(queries.schedules(agent.name));
  const readOnlyReason = useReadOnlyReason();
  const schedules = (query.data?.pages ?? []).flatMap(({ items }) => items);
  return (
    <div style={{ marginTop: 16 }}>
      <Card
        title="Schedules"
        note={
          <Link to="/schedules/new" search={{ agent: agent.name }}>
            add a schedule
          </Link>
        }
        flush
      >
        {query.isError ? <ErrorNote error={query.error} /> : null}
        {schedules.length > 0 ? (
          <ScheduleTable schedules={schedules} label={`Schedules of ${agent.name}`} readOnlyReason={readOnlyReason} />
        ) : (
          <p className="faint" style={{ padding: 14 }}>
            No schedules. This agent runs only when someone starts it.
          </p>
        )}
      </Card>
    </div>
  );
}

function getOtherFields(agent: Agent): Record<string, unknown> {
  const hidden = new Set(["name", "command", "system_prompt", "description", "title", "fault"]);
  return Object.fromEntries(Object.entries(agent).filter(([key, value]) => !hidden.has(key) && value !== null));
}
