import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { RunLog } from "../../data/run-events.ts";
import type { Run } from "../../data/queries.ts";
import { matches, spendingOf, type Step, stepsOf } from "../../data/steps.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { fine, useNow } from "../../parts/time.tsx";
import { isTerminal } from "../../../src/model/states.ts";
import { Spending } from "./spending.tsx";
import { StepDetails } from "./step-details.tsx";
import styles from "./timeline.module.css";

/** A waterfall of the run's steps, with details of the selected step beside it. */
export function Timeline({ run, log, chosen }: { run: Run; log: RunLog; chosen: string | null }) {
  const steps = useMemo(() => stepsOf(run, log.activity), [run, log.activity]);
  const spending = useMemo(() => spendingOf(log.activity), [log.activity]);
  const [find, setFind] = useState("");
  const [onlyFailures, setOnlyFailures] = useState(false);
  const navigate = useNavigate();
  const at = useNow();
  const from = Date.parse(run.created_at);
  const ends = steps.map(({ to }) => to ?? 0);
  const to = Math.max(
    from + 1,
    isTerminal(run.status) ? Math.max(...ends, Date.parse(run.finished_at ?? run.created_at)) : at,
  );
  const step = steps.find(({ id }) => id === chosen) ?? chooseFirst(steps);
  const failures = steps.filter(({ tone, depth }) => tone === "bad" && depth > 0).length;
  const wanted = find.trim().toLowerCase();
  const searching = wanted !== "" || onlyFailures;
  const { isFolded, toggle, childrenOf } = useFolds(steps, step);
  const shown = steps.filter(
    (one) =>
      (wanted === "" || matches(one, wanted)) && (!onlyFailures || one.tone === "bad") && (searching || !isFolded(one)),
  );
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
        {steps.length > fewSteps ? (
          <div className={styles["tools"]}>
            <input
              type="search"
              aria-label="Find a step"
              placeholder="Find in names, inputs and outputs"
              value={find}
              onChange={(event) => setFind(event.target.value)}
            />
            {failures > 0 ? (
              <label>
                <input type="checkbox" checked={onlyFailures} onChange={() => setOnlyFailures(!onlyFailures)} /> Only
                failures <span className="faint">{failures}</span>
              </label>
            ) : null}
            <span className="faint push" role="status">
              {searching ? `${shown.length} of ${steps.length}` : `${steps.length}`} steps
            </span>
          </div>
        ) : null}
        <ol className={styles["steps"]} aria-label="Steps">
          {shown.map((one) => {
            const inside = searching ? 0 : childrenOf(one);
            const open = inside > 0 && !isFolded(one, true);
            return (
              <li key={one.id} className={styles["place"]}>
                {inside > 0 ? (
                  <button
                    type="button"
                    className={styles["fold"]}
                    aria-expanded={open}
                    aria-label={`${open ? "Fold" : "Unfold"} ${one.label}`}
                    onClick={() => toggle(one.id)}
                  >
                    <Icon name={open ? "down" : "right"} small />
                  </button>
                ) : null}
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
                    <span className={one.tone === "bad" ? styles["failed"] : undefined}>{one.label}</span>
                    {inside > 0 && !open ? <span className="dim"> +{inside}</span> : null}
                    {one.note ? <span className="faint"> {one.note}</span> : null}
                  </span>
                  <Bar step={one} from={from} to={to} />
                  <span className={styles["time"]}>{timeOf(one, at)}</span>
                </button>
              </li>
            );
          })}
        </ol>
        {shown.length === 0 ? (
          <p className={`faint ${styles["none"]}`}>
            {steps.length === 0 ? "Nothing has started." : "No step matches."}
          </p>
        ) : null}
        {spending.length > 0 ? <Spending points={spending} from={from} to={to} /> : null}
        <Axis span={to - from} />
      </Card>
      {step ? <StepDetails run={run} step={step} /> : null}
    </div>
  );
}

/** Runs with fewer steps need no search. */
const fewSteps = 8;
/** In runs with more steps, turns whose tools all succeeded start folded. */
const manySteps = 40;

/** Turns fold away their tools. In a long run, turns without failures or questions start folded. */
function useFolds(steps: readonly Step[], chosen: Step | null) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const groups = useMemo(() => {
    const turnOf = new Map<Step, Step>();
    const inside = new Map<Step, Step[]>();
    let turn: Step | null = null;
    for (const step of steps) {
      if (step.depth < 2) turn = step.detail.kind === "turn" ? step : null;
      else if (turn) {
        turnOf.set(step, turn);
        inside.set(turn, [...(inside.get(turn) ?? []), step]);
      }
    }
    return { turnOf, inside };
  }, [steps]);
  const holdsChosen = chosen ? groups.turnOf.get(chosen) : undefined;
  const isClosed = (turn: Step): boolean => {
    const inside = groups.inside.get(turn) ?? [];
    const foldedByDefault =
      steps.length > manySteps && turn !== holdsChosen && inside.every(({ tone }) => tone === "ok");
    return foldedByDefault !== toggled.has(turn.id);
  };
  return {
    /** Whether the step's turn is folded. With `itself`, `step` is the turn. */
    isFolded: (step: Step, itself = false): boolean => {
      const turn = itself ? step : groups.turnOf.get(step);
      return turn !== undefined && isClosed(turn);
    },
    toggle: (id: string) =>
      setToggled((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    childrenOf: (step: Step): number => groups.inside.get(step)?.length ?? 0,
  };
}

/** Selects the first open question, else the first failure, else the first program or tool. */
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
