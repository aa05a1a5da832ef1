import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { hasEnded } from "../../../src/model/states.ts";
import { useConnection } from "../../data/live.ts";
import { type LogLine, toLogLines } from "../../data/log-lines.ts";
import type { Run } from "../../data/queries.ts";
import type { RunLog } from "../../data/run-events.ts";
import { Ansi } from "../../parts/ansi.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { formatCount } from "../../parts/numbers.ts";
import { saveAs } from "../../parts/save-as.ts";
import { formatDateTime } from "../../parts/time.tsx";
import styles from "./log.module.css";

export function Log({ run, log }: { run: Run; log: RunLog }) {
  const allLines = useMemo(() => toLogLines(log.events), [log.events]);
  const [search, setSearch] = useState("");
  const [stream, setStream] = useState<"all" | "stdout" | "stderr">("all");
  const [wrap, setWrap] = useState(true);
  const [timeFormat, setTimeFormat] = useState<TimeFormat>("none");
  const lines = useMemo(() => {
    const searchText = search.toLowerCase();
    return allLines.filter(
      (line) =>
        (stream === "all" || line.stream === stream) &&
        (searchText === "" || line.text.toLowerCase().includes(searchText)),
    );
  }, [allLines, search, stream]);
  const connection = useConnection();
  const isActive = !hasEnded(run.status);
  return (
    <Card flush>
      <div className={styles["tools"]}>
        <input
          type="search"
          placeholder="Find in the log"
          aria-label="Find in the log"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <select aria-label="Stream" value={stream} onChange={(event) => setStream(event.target.value as typeof stream)}>
          <option value="all">All output</option>
          <option value="stdout">stdout</option>
          <option value="stderr">stderr</option>
        </select>
        <label>
          <input type="checkbox" checked={wrap} onChange={() => setWrap(!wrap)} /> Wrap
        </label>
        <select
          aria-label="Times"
          value={timeFormat}
          onChange={(event) => setTimeFormat(event.target.value as TimeFormat)}
        >
          <option value="none">No times</option>
          <option value="clock">Time of day</option>
          <option value="since">Since the start</option>
        </select>
        <span className="faint push" role="status">
          {isActive && connection === "reconnecting"
            ? "Reconnecting; no output will be lost"
            : `${formatCount(lines.length)} lines`}
        </span>
        <Button icon="download" variant="quiet" onClick={() => download(run, allLines)}>
          Raw
        </Button>
      </div>
      {lines.length === 0 ? (
        <EmptyState icon="file" title={search === "" ? "No output yet" : "No line matches"}>
          <p>{isActive ? "Output appears here as the run writes it." : "This run wrote nothing."}</p>
        </EmptyState>
      ) : (
        <Lines lines={lines} wrap={wrap} formatTime={createTimeFormatter(timeFormat, run)} isLoaded={log.isLoaded} />
      )}
    </Card>
  );
}

type TimeFormat = "none" | "clock" | "since";

function createTimeFormatter(format: TimeFormat, { started_at, created_at }: Run): ((at: string) => string) | null {
  const start = Date.parse(started_at ?? created_at);
  if (format === "none") return null;
  return format === "clock" ? formatClockTime : (at) => `+${((Date.parse(at) - start) / 1000).toFixed(3)}s`;
}

function formatClockTime(at: string): string {
  const time = new Date(at);
  return `${time.toLocaleTimeString("en-GB")}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function Lines({
  lines,
  wrap,
  formatTime,
  isLoaded,
}: {
  lines: readonly LogLine[];
  wrap: boolean;
  formatTime: ((at: string) => string) | null;
  isLoaded: boolean;
}) {
  const scrollBox = useRef<HTMLDivElement>(null);
  const linkedLine = useMemo(() => Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? 0), []);
  const [highlightedLine, setHighlightedLine] = useState(linkedLine);
  const [follow, setFollow] = useState(linkedLine === 0);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scrollBox.current,
    estimateSize: () => 20,
    overscan: 30,
  });
  useEffect(() => {
    if (follow) rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follow, lines.length, wrap]);
  useEffect(() => {
    if (!isLoaded || linkedLine === 0) return;
    const index = lines.findIndex(({ number }) => number === linkedLine);
    if (index >= 0) rows.scrollToIndex(index, { align: "center" });
  }, [isLoaded]);
  const onScroll = (): void => {
    const { scrollTop, clientHeight, scrollHeight } = scrollBox.current!;
    setFollow(scrollTop + clientHeight > scrollHeight - 40);
  };
  const highlight = (number: number): void => {
    setHighlightedLine(number);
    history.replaceState(history.state, "", `#L${number}`);
  };
  return (
    <div className={styles["frame"]}>
      <div
        ref={scrollBox}
        className={styles["box"]}
        data-wrap={wrap}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-label="Log"
        aria-live="off"
      >
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map(({ index, start, key }) => {
            const { number, at, stream, text } = lines[index]!;
            return (
              <div
                key={key}
                ref={rows.measureElement}
                data-index={index}
                data-stream={stream}
                data-highlighted={number === highlightedLine || undefined}
                className={styles["line"]}
                style={{ transform: `translateY(${start}px)` }}
              >
                <button
                  type="button"
                  tabIndex={-1}
                  aria-label={`Link to line ${number}`}
                  onClick={() => highlight(number)}
                >
                  {number}
                </button>
                {formatTime ? (
                  <time dateTime={at} title={formatDateTime(at)}>
                    {formatTime(at)}
                  </time>
                ) : null}
                <span>
                  <Ansi text={text} />
                </span>
              </div>
            );
          })}
        </div>
      </div>
      {follow ? null : (
        <span className={styles["jump"]}>
          <Button icon="down" onClick={() => setFollow(true)}>
            Jump to latest
          </Button>
        </span>
      )}
    </div>
  );
}

function download(run: Run, lines: readonly LogLine[]): void {
  const text = lines.filter(({ stream }) => stream !== "drover").map((line) => line.text);
  saveAs(new Blob([`${text.join("\n")}\n`], { type: "text/plain" }), `${run.agent_name}-${run.run_id}.log`);
}
