import { Link } from "@tanstack/react-router";
import type { Runner } from "../../data/queries.ts";
import { Card } from "../../parts/card.tsx";
import { Heartbeat, RunnerState, Slots } from "../../parts/runner.tsx";
import styles from "./page.module.css";

const maxRunners = 6;

/** Runners and their last heartbeats. Lost and draining runners come first. */
export function Runners({ runners }: { runners: readonly Runner[] }) {
  const order: Runner["status"][] = ["lost", "draining", "online"];
  const sorted = runners.toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  return (
    <Card title="Runners" note={<Link to="/runners">{runners.length === 1 ? "1" : runners.length}</Link>} flush>
      {runners.length === 0 ? (
        <p className={`faint ${styles["none"]}`}>No runner is registered, so nothing can run.</p>
      ) : (
        <ul>
          {sorted.slice(0, maxRunners).map((runner) => (
            <li key={runner.runner_id} className={styles["runner"]}>
              <RunnerState status={runner.status} />
              <span className="ellipsis grow">
                {runner.name ?? runner.executor_profile} <span className="faint">{runner.hostname}</span>
              </span>
              <Slots slots={runner.slots} running={runner.running} />
              <Heartbeat at={runner.last_seen_at} />
            </li>
          ))}
          {runners.length > maxRunners ? (
            <li className={styles["none"]}>
              <Link to="/runners">{runners.length - maxRunners} more</Link>
            </li>
          ) : null}
        </ul>
      )}
    </Card>
  );
}
