import type { ReactNode } from "react";
import { isTerminal } from "../../../src/model/states.ts";
import type { Run } from "../../data/queries.ts";
import { OpenQuestion } from "../../parts/question-card.tsx";
import type { Step } from "../../data/steps.ts";
import { Card } from "../../parts/card.tsx";
import { Code, Diff, diffOf } from "../../parts/code.tsx";
import { JsonTree } from "../../parts/json-tree.tsx";
import { bytes } from "../../parts/numbers.ts";
import { exact, fine } from "../../parts/time.tsx";
import styles from "./step-details.module.css";

export function StepDetails({ run, step }: { run: Run; step: Step }) {
  const took = step.to === null ? "under way" : fine(step.to - step.from);
  return (
    <div className={styles["sticky"]}>
      <Card
        title={<span className="mono">{step.label}</span>}
        note={`${took} · ${exact(new Date(step.from).toISOString())}`}
      >
        <div className={styles["body"]}>
          <Detail run={run} step={step} />
        </div>
      </Card>
    </div>
  );
}

function Detail({ run, step: { detail } }: { run: Run; step: Step }) {
  switch (detail.kind) {
    case "queue":
      return <p className="dim">From the request until a runner began with it.</p>;
    case "attempt":
      return (
        <Facts
          facts={{
            Attempt: detail.attempt,
            Isolation: run.isolation,
            Directory: run.project_dir,
            Priority: run.priority,
          }}
        />
      );
    case "turn":
      return detail.text === "" ? (
        <p className="dim">The model called tools without saying anything.</p>
      ) : (
        <Code text={detail.text} />
      );
    case "tool": {
      const diff = diffOf(detail.input);
      return (
        <>
          <Part title="Input">{diff === null ? <JsonTree value={detail.input} /> : <Diff text={diff} />}</Part>
          {detail.output === undefined ? null : (
            <Part title={detail.is_error ? "Error" : "Output"}>
              {typeof detail.output === "string" ? <Code text={detail.output} /> : <JsonTree value={detail.output} />}
            </Part>
          )}
        </>
      );
    }
    case "question": {
      if (detail.decision === null && !isTerminal(run.status))
        return <OpenQuestion run_id={run.run_id} request_id={detail.request_id} />;
      const diff = diffOf(detail.input);
      return (
        <>
          <Part title={detail.tool}>{diff === null ? <JsonTree value={detail.input} /> : <Diff text={diff} />}</Part>
          <p className="dim">
            {detail.decision === null
              ? "Nobody has answered."
              : `${detail.decision} by ${detail.by ?? "nobody"}${detail.message ? `: ${detail.message}` : ""}`}
          </p>
        </>
      );
    }
    case "execution": {
      const { start, end } = detail;
      return (
        <>
          <Code text={start.argv.join(" ")} label="Command" />
          <Facts
            facts={{
              "Exit code": end?.exit_code,
              Signal: end?.signal,
              Stopped: end?.stopped,
              Error: end?.error?.message,
              Directory: start.working_directory,
              Timeout: start.timeout_ms === null ? null : fine(start.timeout_ms),
              Isolation: end?.isolation,
              CPU: end?.resources ? fine(end.resources.user_ms + end.resources.system_ms) : null,
              Memory: end?.resources ? bytes(end.resources.max_rss_kb * 1024) : null,
              stdout: end ? bytes(end.stdout_bytes) : null,
              stderr: end ? bytes(end.stderr_bytes) : null,
              "Left running": end?.leftovers || null,
              Environment: start.environment ? `${start.environment.given.length} variables given` : null,
            }}
          />
        </>
      );
    }
    default:
      return detail satisfies never;
  }
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles["part"]}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

export function Facts({ facts }: { facts: Record<string, string | number | null | undefined> }) {
  return (
    <dl className={styles["facts"]}>
      {Object.entries(facts)
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
