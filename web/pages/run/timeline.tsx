import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { RunLog } from "../../data/run-events.ts";
import type { Run } from "../../data/queries.ts";
import { type Step, stepsOf } from "../../data/steps.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { fine, useNow } from "../../parts/time.tsx";
import { isTerminal } from "../../../src/model/states.ts";
import { StepDetails } from "./step-details.tsx";
import styles from "./timeline.module.css";

/** A waterfall of what the run did, and beside it the step that is chosen. */
export function Timeline({ run, log, chosen }: { run: Run; log: RunLog; chosen: string | null }) {
  const steps = useMemo(() => stepsOf(run, log.events), [run, log.events]);
  const navigate = useNavigate();
  const at = useNow();
  const from = Date.parse(run.created_at);
  const ends = steps.map(({ to }) => to ?? 0);
  const to = Math.max(
    from + 1,
    isTerminal(run.status) ? Math.max(...ends, Date.parse(run.finished_at ?? run.created_at)) : at,
  );
  const step = steps.find(({ id }) => id === chosen) ?? chooseFirst(steps);
  const choose = (id: string): void =>
    void navigate({
      to: "/runs/$runId",
      params: { runId: run.run_id },
      search: { step: id },
      replace: true,
      resetScroll: false,
    });
  if (!log.loaded && steps.length === 0) return <Skeleton rows={6} />;
  return (
    <div className={styles["panes"]}>
      <Card flush>
        <ol className={styles["steps"]} aria-label="Steps">
          {steps.map((one) => (
            <li key={one.id}>
              <button
                type="button"
                className={styles["step"]}
                data-depth={one.depth}
                aria-pressed={one === step}
                onClick={() => choose(one.id)}
              >
                <span
                  className={`${styles["label"]} ${one.detail.kind === "tool" || one.detail.kind === "execution" ? "mono" : ""}`}
                >
                  {one.label}
                  {one.note ? <span className="faint"> {one.note}</span> : null}
                </span>
                <Bar step={one} from={from} to={to} />
                <span className={styles["time"]}>{timeOf(one, at)}</span>
              </button>
            </li>
          ))}
        </ol>
        <Axis span={to - from} />
      </Card>
      {step ? <StepDetails run={run} step={step} /> : null}
    </div>
  );
}

/** What asks for something first, else what failed, else the first program or tool. */
function chooseFirst(steps: readonly Step[]): Step | null {
  return (
    steps.find(({ tone }) => tone === "wait") ??
    steps.find(({ tone, depth }) => tone === "bad" && depth > 0) ??
    steps.find(({ detail: { kind } }) => kind === "execution" || kind === "tool") ??
    steps.at(-1) ??
    null
  );
}

function timeOf({ from, to, tone }: Step, now: number): string {
  const took = fine((to ?? Math.max(now, from)) - from);
  return to === null && tone === "wait" ? `waits ${took}` : took;
}

function Bar({ step, from, to }: { step: Step; from: number; to: number }) {
  const left = Math.min(99, (100 * (step.from - from)) / (to - from));
  const width = Math.min(100 - left, Math.max(0.6, (100 * ((step.to ?? to) - step.from)) / (to - from)));
  return (
    <span className={styles["track"]} aria-hidden="true">
      <span
        className={styles["bar"]}
        data-tone={step.tone}
        data-depth={step.depth}
        data-open={step.to === null || undefined}
        style={{ left: `${left}%`, width: `${width}%` }}
      />
    </span>
  );
}

function Axis({ span }: { span: number }) {
  return (
    <div className={styles["axis"]} aria-hidden="true">
      <span />
      <span className={styles["marks"]}>
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span key={part}>{part === 0 ? "0" : fine(span * part)}</span>
        ))}
      </span>
      <span />
    </div>
  );
}
