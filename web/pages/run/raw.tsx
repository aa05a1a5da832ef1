import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { RunLog } from "../../data/run-events.ts";
import { Card } from "../../parts/card.tsx";
import { formatCount } from "../../parts/numbers.ts";
import styles from "./raw.module.css";

/** Every stored event as JSON. */
export function Raw({ log: { events } }: { log: RunLog }) {
  const scrollBox = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => scrollBox.current,
    estimateSize: () => 24,
    overscan: 20,
  });
  return (
    <Card title="Events" note={`${formatCount(events.length)}, in the order they were stored`} flush>
      <div ref={scrollBox} className={styles["box"]} tabIndex={0} role="region" aria-label="Raw events">
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map(({ index, start, key }) => {
            const { seq, at, event } = events[index]!;
            return (
              <div
                key={key}
                ref={rows.measureElement}
                data-index={index}
                className={styles["row"]}
                style={{ transform: `translateY(${start}px)` }}
              >
                <details>
                  <summary>
                    <span className="faint">{seq}</span>
                    <span className="faint">{at.slice(11, 23)}</span>
                    <b>{event.type}</b>
                    <span className="dim">{JSON.stringify(event).slice(0, 400)}</span>
                  </summary>
                  <pre>{JSON.stringify(event, null, 2)}</pre>
                </details>
              </div>
            );
          })}
        </div>
      </div>
    </Card>
  );
}
