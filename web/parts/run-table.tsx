import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, type RefObject, useLayoutEffect, useRef, useState } from "react";
import type { RunRow } from "../data/queries.ts";
import { useRunnerNames } from "../data/runner-names.ts";
import { stripAnsi } from "./ansi.tsx";
import { formatMoney } from "./numbers.ts";
import { Status } from "./status.tsx";
import { Age, Duration } from "./time.tsx";
import styles from "./run-table.module.css";

interface Selection {
  selectedIds: ReadonlySet<string>;
  toggle(run_id: string): void;
}

interface Props {
  runs: readonly RunRow[];
  label: string;
  selection?: Selection;
  /** Index of the row selected with j and k. */
  currentIndex?: number | null;
  /** The search text. Rows show where they match it. */
  searchText?: string | undefined;
}

/** A virtual list: only visible rows are in the DOM. */
export function RunTable({ runs, label, selection, currentIndex = null, searchText }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  const isNarrow = useNarrow(frame);
  useLayoutEffect(
    () => setTop(list.current ? list.current.getBoundingClientRect().top + window.scrollY : 0),
    [isNarrow],
  );
  const rows = useWindowVirtualizer({
    count: runs.length,
    estimateSize: () => (isNarrow ? 56 : 33),
    overscan: 12,
    scrollMargin: top,
  });
  useLayoutEffect(() => {
    if (currentIndex !== null) rows.scrollToIndex(currentIndex, { align: "auto" });
  }, [currentIndex]);
  const getRunnerName = useRunnerNames();
  return (
    <div ref={frame} className={styles["frame"]}>
      <div
        className={styles["table"]}
        role="table"
        aria-label={label}
        aria-rowcount={runs.length + 1}
        data-select={selection !== undefined}
      >
        <div role="rowgroup">
          <div className={styles["head"]} role="row">
            {selection ? (
              <span role="columnheader">
                <span className="visually-hidden">Select</span>
              </span>
            ) : null}
            {["Status", "Agent", "Summary", "Trigger", "Runner"].map((head) => (
              <span key={head} role="columnheader">
                {head}
              </span>
            ))}
            {["Duration", "Cost", "Age"].map((head) => (
              <span key={head} role="columnheader" className={styles["right"]}>
                {head}
              </span>
            ))}
          </div>
        </div>
        <div ref={list} className={styles["rows"]} role="rowgroup" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const run = runs[index]!;
            return (
              <div key={run.run_id} className={styles["item"]} style={{ transform: `translateY(${start - top}px)` }}>
                <Row
                  run={run}
                  index={index}
                  isCurrent={index === currentIndex}
                  searchText={searchText}
                  runner={getRunnerName(run.runner_id)}
                  selected={selection?.selectedIds.has(run.run_id) ?? null}
                  toggle={selection?.toggle}
                />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const Row = memo(function Row({
  run,
  index,
  isCurrent,
  searchText,
  runner,
  selected,
  toggle,
}: {
  run: RunRow;
  index: number;
  isCurrent: boolean;
  searchText: string | undefined;
  runner: string;
  selected: boolean | null;
  toggle: ((run_id: string) => void) | undefined;
}) {
  const summary = summarizeRun(run);
  return (
    <div
      className={styles["row"]}
      role="row"
      aria-rowindex={index + 2}
      data-current={isCurrent || undefined}
      data-selected={selected || undefined}
    >
      {selected === null ? null : (
        <span role="cell" className={styles["check"]}>
          <input
            type="checkbox"
            aria-label={`Select ${run.agent_name} ${run.run_id}`}
            checked={selected}
            onChange={() => toggle?.(run.run_id)}
          />
        </span>
      )}
      <span role="cell" className={styles["status"]}>
        <Status status={run.status} />
      </span>
      <span role="cell" className={styles["agent"]}>
        <Link to="/runs/$runId" params={{ runId: run.run_id }} search={getMatchTarget(run)} className={styles["link"]}>
          {run.agent_name}
        </Link>
      </span>
      <span role="cell" className={`${styles["summary"]} ${/^[[{]/.test(summary) ? "mono" : ""}`}>
        {run.match && searchText ? (
          <>
            <span className="faint">{matchLabels[run.match.where]} </span>
            <Highlight text={run.match.excerpt} searchText={searchText} />
          </>
        ) : (
          summary
        )}
      </span>
      <span role="cell" className={styles["trigger"]}>
        {run.schedule ? `schedule · ${run.schedule}` : run.trigger_type}
      </span>
      <span role="cell" className={styles["runner"]}>
        {runner}
      </span>
      <span role="cell" className={styles["duration"]}>
        <Duration from={run.started_at} to={run.finished_at} />
      </span>
      <span role="cell" className={styles["cost"]}>
        {formatMoney(run.usage?.cost_usd)}
      </span>
      <span role="cell" className={styles["age"]}>
        <Age at={run.created_at} />
      </span>
    </div>
  );
});

const matchLabels = { prompt: "prompt", result: "result", error: "error", tool_input: "tool" };

/** Search parameters that open the run's page at the match. */
function getMatchTarget({ match }: RunRow): { step?: string; tab?: "result" } {
  if (match?.where === "tool_input" && match.seq !== null) return { step: `e${match.seq}` };
  return match?.where === "result" ? { tab: "result" } : {};
}

/** Highlights the searched words in the text. */
function Highlight({ text, searchText }: { text: string; searchText: string }) {
  const searchWords = [...searchText.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)].map(([word]) => word);
  return text
    .split(/([\p{L}\p{N}]+)/u)
    .map((piece, index) =>
      searchWords.some((word) => piece.toLowerCase().startsWith(word)) ? <mark key={index}>{piece}</mark> : piece,
    );
}

export function summarizeRun(run: RunRow): string {
  return stripAnsi(run.error ?? run.summary ?? run.waiting_for ?? run.reason ?? "");
}

/** Below this width each run takes two lines. Must match run-table.module.css. */
const narrowWidth = 560;

function useNarrow(frame: RefObject<HTMLDivElement | null>): boolean {
  const [isNarrow, setIsNarrow] = useState(() => window.innerWidth <= narrowWidth);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setIsNarrow(entry.contentRect.width <= narrowWidth));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, [frame]);
  return isNarrow;
}
