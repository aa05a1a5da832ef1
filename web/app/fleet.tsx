import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queries } from "../data/queries.ts";
import styles from "./fleet.module.css";

/** Connected runners and their busy slots, shown at the bottom of the navigation. */
export function Fleet() {
  const { data: runners } = useQuery(queries.runners());
  if (runners === undefined) return null;
  const connected = runners.filter(({ status }) => status !== "lost");
  const slots = connected.reduce((sum, runner) => sum + runner.slots, 0);
  const busySlots = connected.reduce((sum, { running }) => sum + running, 0);
  return (
    <Link to="/runners" className={styles["fleet"]}>
      <span className="row">
        <i data-connected={connected.length > 0} aria-hidden="true" />
        {connected.length === 1 ? "1 runner" : `${connected.length} runners`}
      </span>
      <span className="faint">
        {busySlots} of {slots} slots
      </span>
      <span className={styles["meter"]} aria-hidden="true">
        <span style={{ width: `${slots === 0 ? 0 : (100 * busySlots) / slots}%` }} />
      </span>
    </Link>
  );
}
