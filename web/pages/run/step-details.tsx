import type { ReactNode } from "react";
import { hasEnded } from "../../../src/model/states.ts";
import type { Run } from "../../data/queries.ts";
import { OpenQuestion } from "../../parts/question-card.tsx";
import { describeEnvironment } from "../../data/describe-environment.ts";
import type { Step } from "../../data/steps.ts";
import { Card } from "../../parts/card.tsx";
import { Code } from "../../parts/code.tsx";
import { formatBytes, formatCount, formatMoney } from "../../parts/numbers.ts";
import { formatDateTime, formatDuration } from "../../parts/time.tsx";
import { ToolInput, ToolOutput } from "../../parts/tool-input.tsx";
import styles from "./step-details.module.css";

export function StepDetails({ run, step }: { run: Run; step: Step }) {
  const duration = step.to === null ? "in progress" : formatDuration(step.to - step.from);
  return (
    <div className={styles["sticky"]}>
      <Card
        title={<span className="mono">{step.label}</span>}
        note={`${duration} · ${formatDateTime(new Date(step.from).toISOString())}`}
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
      return <p className="dim">The time from the request until a runner started the run.</p>;
    case "attempt":
      return (
        <Facts
          facts={{
            Attempt: detail.number,
            Outcome: detail.result?.status ?? (detail.to === null ? null : "ended without a result"),
            Reason: detail.result?.reason,
            Error: detail.result?.error,
            "Exit code": detail.result?.exit_code,
            Isolation: run.isolation,
            Directory: run.project_dir,
            Priority: run.priority,
          }}
        />
      );
    case "turn":
      return (
        <>
          {detail.text === "" ? (
            <p className="dim">The model called tools without writing any text.</p>
          ) : (
            <Code text={detail.text} />
          )}
          {detail.usage === null ? null : (
            <Facts
              facts={{
                "Tokens in": formatCount(detail.usage.input_tokens),
                "Tokens out": formatCount(detail.usage.output_tokens),
                Cost: detail.usage.cost_usd ? formatMoney(detail.usage.cost_usd) : null,
              }}
            />
          )}
        </>
      );
    case "user":
      return (
        <>
          <Code text={detail.text} />
          <p className="dim">
            {detail.by === null ? "Sent" : `Sent by ${detail.by}`} while the run was active
            {detail.read ? "." : "; the agent has not read it."}
          </p>
        </>
      );
    case "tool":
      return (
        <>
          <Section title="Input">
            <ToolInput input={detail.input} />
          </Section>
          {detail.output === undefined ? null : (
            <Section title={detail.is_error ? "Error" : "Output"}>
              <ToolOutput value={detail.output} />
            </Section>
          )}
        </>
      );
    case "question":
      if (detail.decision === null && !hasEnded(run.status))
        return <OpenQuestion run_id={run.run_id} request_id={detail.request_id} />;
      return (
        <>
          <Section title={detail.tool}>
            <ToolInput input={detail.input} />
          </Section>
          <p className="dim">
            {detail.decision === null
              ? "Not answered."
              : `${detail.decision}${detail.by ? ` by ${detail.by}` : ""}${detail.message ? `: ${detail.message}` : ""}`}
          </p>
        </>
      );
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
              Timeout: start.timeout_ms === null ? null : formatDuration(start.timeout_ms),
              Isolation: end?.isolation,
              CPU: end?.resources ? formatDuration(end.resources.user_ms + end.resources.system_ms) : null,
              Memory: end?.resources ? formatBytes(end.resources.max_rss_kb * 1024) : null,
              stdout: end ? formatBytes(end.stdout_bytes) : null,
              stderr: end ? formatBytes(end.stderr_bytes) : null,
              "Processes left": end?.leftovers || null,
              Environment: start.environment ? describeEnvironment(start.environment) : null,
            }}
          />
        </>
      );
    }
    default:
      return detail satisfies never;
  }
}

function Section({ title, children }: { title: string; children: ReactNode }) {
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
