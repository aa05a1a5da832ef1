import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queries } from "../data/queries.ts";
import styles from "./fleet.module.css";

/** At the foot of the navigation: who is there to run things. */
export function Fleet() {
  const { data: runners } = useQuery(queries.runners());
  if (runners === undefined) return null;
  const there = runners.filter(({ status }) => status !== "lost");
  const slots = there.reduce((sum, runner) => sum + runner.slots, 0);
  const busy = there.reduce((sum, { running }) => sum + running, 0);
  return (
    <Link to="/runners" className={styles["fleet"]}>
      <span className="row">
        <i data-there={there.length > 0} aria-hidden="true" />
        {there.length === 1 ? "1 runner" : `${there.length} runners`}
      </span>
      <span className="faint">
        {busy} of {slots} slots
      </span>
      <span className={styles["meter"]} aria-hidden="true">
        <span style={{ width: `${slots === 0 ? 0 : (100 * busy) / slots}%` }} />
      </span>
    </Link>
  );
}
