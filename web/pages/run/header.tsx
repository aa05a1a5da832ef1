import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { hasEnded } from "../../../src/model/states.ts";
import { api } from "../../data/client.ts";
import { getNoRetryReason } from "../../data/no-retry-reason.ts";
import { queries, queryClient, type Run } from "../../data/queries.ts";
import { useRunnerNames } from "../../data/runner-names.ts";
import { Button } from "../../parts/button.tsx";
import { copyText, CopyButton } from "../../parts/command.tsx";
import { Menu } from "../../parts/menu.tsx";
import { formatCount, formatMoney, formatShortId } from "../../parts/numbers.ts";
import { Status } from "../../parts/status.tsx";
import { Age, Duration } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { toDroverCommand, toCurlCommand } from "./copy-as.ts";
import styles from "./header.module.css";

const RunDialog = lazy(async () => ({ default: (await import("../../parts/run-dialog.tsx")).RunDialog }));

export function Header({ run }: { run: Run }) {
  return (
    <>
      <div className={`row wrap ${styles["head"]}`}>
        <h1>{run.agent_name}</h1>
        <Status status={run.status} {...(run.status === "waiting" ? { label: "Waiting for you" } : {})} />
        {run.reason ? <code className={styles["reason"]}>{run.reason}</code> : null}
        <Actions run={run} />
      </div>
      <Facts run={run} />
      {run.error ? (
        <p className={styles["error"]} role="alert">
          {run.error}
        </p>
      ) : null}
    </>
  );
}

function Actions({ run }: { run: Run }) {
  const [dialogMode, setDialogMode] = useState<"start" | "resume" | "fork" | null>(null);
  const navigate = useNavigate();
  const agent = useQuery({
    ...queries.agents(),
    select: (agents) => agents.find(({ name }) => name === run.agent_name),
  }).data;
  const runHasEnded = hasEnded(run.status);
  const noRetryReason = getNoRetryReason(run, agent);
  const isProcedural = agent?.type === "procedural";
  const continueDisabledReason = isProcedural
    ? "A procedural agent has no conversation to continue"
    : run.session_id === null
      ? "This run has no session"
      : null;
  const stop = (): void =>
    void api.runs
      .stop(run.run_id)
      .then(() => (toast("Stopping"), queryClient.invalidateQueries({ queryKey: ["run", run.run_id] })), toastError);
  const retry = (): void =>
    void api.runs
      .retry(run.run_id)
      .then((created) => navigate({ to: "/runs/$runId", params: { runId: created.run_id } }), toastError);
  const copy = (text: string, name: string): void =>
    void copyText(text).then(() => toast(`Copied ${name}`), toastError);
  return (
    <span className={styles["actions"]}>
      <Menu
        trigger={
          <Button variant="quiet" icon="copy">
            Copy as
          </Button>
        }
        entries={[
          { text: "curl", icon: "runs", onSelect: () => copy(toCurlCommand(run), "as curl") },
          { text: "Command line", icon: "keyboard", onSelect: () => copy(toDroverCommand(run), "as a command") },
          { text: "Link to this page", icon: "link", onSelect: () => copy(location.href, "the link") },
        ]}
      />
      <Button icon="chat" disabledReason={continueDisabledReason} onClick={() => setDialogMode("resume")}>
        Resume
      </Button>
      <Button icon="fork" disabledReason={continueDisabledReason} onClick={() => setDialogMode("fork")}>
        Fork
      </Button>
      <Button icon="edit" disabledReason={noRetryReason} onClick={() => setDialogMode("start")}>
        Edit and run again
      </Button>
      {runHasEnded ? (
        <Button icon="retry" disabledReason={noRetryReason} onClick={retry}>
          Retry
        </Button>
      ) : (
        <Button
          variant="danger"
          icon="stop"
          disabledReason={run.status === "stopping" ? "Already stopping" : null}
          onClick={stop}
        >
          Stop
        </Button>
      )}
      <Suspense>
        {agent && dialogMode ? (
          <RunDialog agent={agent} from={run} mode={dialogMode} onClose={() => setDialogMode(null)} />
        ) : null}
      </Suspense>
    </span>
  );
}

function Facts({ run }: { run: Run }) {
  const getRunnerName = useRunnerNames();
  const children = useQuery(queries.recentRuns({ parent_run_id: run.run_id }, 100)).data ?? [];
  const tokens = run.usage ? run.usage.input_tokens + run.usage.output_tokens : null;
  return (
    <div className={styles["facts"]}>
      <span className="mono row">
        {formatShortId(run.run_id)} <CopyButton text={run.run_id} label="Copy the run's id" />
      </span>
      <span>
        created <Age at={run.created_at} suffix=" ago" />
      </span>
      {run.started_at ? (
        <span>
          {run.finished_at ? "took" : "for"} <Duration from={run.started_at} to={run.finished_at} />
        </span>
      ) : null}
      {run.exit_code === null ? null : <span>exit {run.exit_code}</span>}
      {run.runner_id ? <span>runner {getRunnerName(run.runner_id)}</span> : null}
      {run.schedule ? (
        <Link to="/schedules" search={{ agent: run.agent_name }}>
          schedule · {run.schedule}
        </Link>
      ) : (
        <span>trigger {run.trigger_type}</span>
      )}
      {run.mode === "start" ? null : <span>mode {run.mode}</span>}
      {run.attempt > 1 ? <span>attempt {run.attempt}</span> : null}
      {tokens === null ? null : <span>{formatCount(tokens)} tokens</span>}
      {run.usage?.cost_usd ? <span>{formatMoney(run.usage.cost_usd)}</span> : null}
      {run.session_id ? (
        <Link to="/runs" search={{ session: run.session_id }}>
          session <span className="mono">{formatShortId(run.session_id)}</span>
        </Link>
      ) : null}
      {children.length > 0 ? (
        <Link to="/runs" search={{ parent: run.run_id }}>
          started{" "}
          {children.length === 1 ? "1 run" : `${children.length === 100 ? "100 or more" : children.length} runs`}
        </Link>
      ) : null}
      {run.parent_run_id ? <RunLink label="started by" run_id={run.parent_run_id} /> : null}
      {run.retry_of ? <RunLink label="retry of" run_id={run.retry_of} /> : null}
      {run.forked_from ? (
        <Link to="/runs" search={{ session: run.forked_from }}>
          forked from <span className="mono">{formatShortId(run.forked_from)}</span>
        </Link>
      ) : null}
      {run.repo_sha ? <span className="mono">@{run.repo_sha.slice(0, 7)}</span> : null}
      {(["task_id", "step_id", "tool_call_id", "worktree_id"] as const).map((key) =>
        run[key] ? (
          <span key={key}>
            {key.replace("_id", "")} <span className="mono">{run[key]}</span>
          </span>
        ) : null,
      )}
      <span>by {run.created_by}</span>
    </div>
  );
}

function RunLink({ label, run_id }: { label: string; run_id: string }) {
  return (
    <Link to="/runs/$runId" params={{ runId: run_id }}>
      {label} <span className="mono">{formatShortId(run_id)}</span>
    </Link>
  );
}
