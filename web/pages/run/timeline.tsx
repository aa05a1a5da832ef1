import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { RunLog } from "../../data/run-events.ts";
import type { Run } from "../../data/queries.ts";
import { matchesText, toSpending, type Step, toSteps } from "../../data/steps.ts";
import { Card } from "../../parts/card.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Icon } from "../../parts/icon.tsx";
import { formatDuration, useNow } from "../../parts/time.tsx";
import { hasEnded } from "../../../src/model/states.ts";
import { Spending } from "./spending.tsx";
import { StepDetails } from "./step-details.tsx";
import styles from "./timeline.module.css";

/** A waterfall of the run's steps, with details of the selected step beside it. */
export function Timeline({ run, log, selectedId }: { run: Run; log: RunLog; selectedId: string | null }) {
  const steps = useMemo(() => toSteps(run, log.activity), [run, log.activity]);
  const spending = useMemo(() => toSpending(log.activity), [log.activity]);
  const [search, setSearch] = useState("");
  const [onlyFailures, setOnlyFailures] = useState(false);
  const navigate = useNavigate();
  const now = useNow();
  const from = Date.parse(run.created_at);
  const ends = steps.map(({ to }) => to ?? 0);
  const to = Math.max(
    from + 1,
    hasEnded(run.status) ? Math.max(...ends, Date.parse(run.finished_at ?? run.created_at)) : now,
  );
  const selected = steps.find(({ id }) => id === selectedId) ?? selectByDefault(steps);
  const failures = steps.filter(({ tone, depth }) => tone === "bad" && depth > 0).length;
  const searchText = search.trim().toLowerCase();
  const isFiltered = searchText !== "" || onlyFailures;
  const { isFolded, toggle, countChildren } = useFolds(steps, selected);
  const visibleSteps = steps.filter(
    (item) =>
      (searchText === "" || matchesText(item, searchText)) &&
      (!onlyFailures || item.tone === "bad") &&
      (isFiltered || !isFolded(item)),
  );
  const choose = (id: string): void =>
    void navigate({
      to: "/runs/$runId",
      params: { runId: run.run_id },
      search: { step: id },
      replace: true,
      resetScroll: false,
    });
  if (!log.isLoaded && steps.length === 0) return <Skeleton rows={6} />;
  return (
    <div className={styles["panes"]}>
      <Card flush>
        {steps.length > minStepsForSearch ? (
          <div className={styles["tools"]}>
            <input
              type="search"
              aria-label="Find a step"
              placeholder="Find in names, inputs and outputs"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
            {failures > 0 ? (
              <label>
                <input type="checkbox" checked={onlyFailures} onChange={() => setOnlyFailures(!onlyFailures)} /> Only
                failures <span className="faint">{failures}</span>
              </label>
            ) : null}
            <span className="faint push" role="status">
              {isFiltered ? `${visibleSteps.length} of ${steps.length}` : `${steps.length}`} steps
            </span>
          </div>
        ) : null}
        <ol className={styles["steps"]} aria-label="Steps">
          {visibleSteps.map((item) => {
            const children = isFiltered ? 0 : countChildren(item);
            const open = children > 0 && !isFolded(item, true);
            return (
              <li key={item.id} className={styles["item"]}>
                {children > 0 ? (
                  <button
                    type="button"
                    className={styles["fold"]}
                    aria-expanded={open}
                    aria-label={`${open ? "Fold" : "Unfold"} ${item.label}`}
                    onClick={() => toggle(item.id)}
                  >
                    <Icon name={open ? "down" : "right"} small />
                  </button>
                ) : null}
                <button
                  type="button"
                  className={styles["step"]}
                  data-depth={item.depth}
                  aria-pressed={item === selected}
                  onClick={() => choose(item.id)}
                >
                  <span
                    className={`${styles["label"]} ${item.detail.kind === "tool" || item.detail.kind === "execution" ? "mono" : ""}`}
                  >
                    <span className={item.tone === "bad" ? styles["failed"] : undefined}>{item.label}</span>
                    {children > 0 && !open ? <span className="dim"> +{children}</span> : null}
                    {item.note ? <span className="faint"> {item.note}</span> : null}
                  </span>
                  <Bar step={item} from={from} to={to} />
                  <span className={styles["time"]}>{formatStepTime(item, now)}</span>
                </button>
              </li>
            );
          })}
        </ol>
        {visibleSteps.length === 0 ? (
          <p className={`faint ${styles["none"]}`}>{steps.length === 0 ? "No steps yet." : "No step matches."}</p>
        ) : null}
        {spending.length > 0 ? <Spending points={spending} from={from} to={to} /> : null}
        <Axis span={to - from} />
      </Card>
      {selected ? <StepDetails run={run} step={selected} /> : null}
    </div>
  );
}

/** Runs with more steps than this show a search field. */
const minStepsForSearch = 8;
/** In runs with more steps, turns whose tools all succeeded start folded. */
const maxUnfoldedSteps = 40;

/** Lets the user fold the tools of a turn. In a long run, turns whose tools all succeeded start folded. */
function useFolds(steps: readonly Step[], selected: Step | null) {
  const [toggledIds, setToggledIds] = useState<ReadonlySet<string>>(new Set());
  const groups = useMemo(() => {
    const turnByStep = new Map<Step, Step>();
    const children = new Map<Step, Step[]>();
    let turn: Step | null = null;
    for (const step of steps) {
      if (step.depth < 2) turn = step.detail.kind === "turn" ? step : null;
      else if (turn) {
        turnByStep.set(step, turn);
        children.set(turn, [...(children.get(turn) ?? []), step]);
      }
    }
    return { turnByStep, children };
  }, [steps]);
  const selectedTurn = selected ? groups.turnByStep.get(selected) : undefined;
  const isClosed = (turn: Step): boolean => {
    const children = groups.children.get(turn) ?? [];
    const foldedByDefault =
      steps.length > maxUnfoldedSteps && turn !== selectedTurn && children.every(({ tone }) => tone === "ok");
    return foldedByDefault !== toggledIds.has(turn.id);
  };
  return {
    /** Whether the step's turn is folded. With `isTurn`, the step itself is the turn. */
    isFolded: (step: Step, isTurn = false): boolean => {
      const turn = isTurn ? step : groups.turnByStep.get(step);
      return turn !== undefined && isClosed(turn);
    },
    toggle: (id: string) =>
      setToggledIds((previous) => {
        const next = new Set(previous);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    countChildren: (step: Step): number => groups.children.get(step)?.length ?? 0,
  };
}

/** Selects the first open question, else the first failure, else the first program or tool. */
function selectByDefault(steps: readonly Step[]): Step | null {
  return (
    steps.find(({ tone }) => tone === "wait") ??
    steps.find(({ tone, depth }) => tone === "bad" && depth > 0) ??
    steps.find(({ detail: { kind } }) => kind === "execution" || kind === "tool") ??
    steps.at(-1) ??
    null
  );
}

function formatStepTime({ from, to, tone }: Step, now: number): string {
  const duration = formatDuration((to ?? Math.max(now, from)) - from);
  return to === null && tone === "wait" ? `waiting ${duration}` : duration;
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
      <span className={styles["ticks"]}>
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span key={part}>{part === 0 ? "0" : formatDuration(span * part)}</span>
        ))}
      </span>
      <span />
    </div>
  );
}
