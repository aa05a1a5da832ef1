import { Link } from "@tanstack/react-router";
import type { Execution } from "../data/queries.ts";
import { shortId } from "./numbers.ts";
import { Status } from "./status.tsx";
import { Ago, fine } from "./time.tsx";
import styles from "./table.module.css";

export function ExecutionTable({
  executions,
  withRun = false,
}: {
  executions: readonly Execution[];
  withRun?: boolean;
}) {
  return (
    <div className={styles["scroll"]} tabIndex={0} role="region" aria-label="Programs">
      <table className={styles["table"]}>
        <thead>
          <tr>
            <th>End</th>
            <th>Command</th>
            {withRun ? <th>Run</th> : <th>Directory</th>}
            <th>Isolation</th>
            <th className={styles["right"]}>Took</th>
            <th className={styles["right"]}>Age</th>
          </tr>
        </thead>
        <tbody>
          {executions.map(({ run_id, start, end }) => (
            <tr key={start.execution_id}>
              <td>
                {end === null ? (
                  <Status status="running" />
                ) : end.interrupted ? (
                  <Status status="cancelled" word="Interrupted" />
                ) : (
                  <Status
                    status={end.success ? "completed" : "failed"}
                    word={end.exit_code === null ? (end.signal ?? "ended") : `exit ${end.exit_code}`}
                  />
                )}
              </td>
              <td className={`mono ${styles["wide"]}`} title={start.command}>
                {start.command}
              </td>
              {withRun ? (
                <td>
                  <Link className={styles["link"]} to="/runs/$runId" params={{ runId: run_id }}>
                    <span className="mono">{shortId(run_id)}</span>
                  </Link>
                </td>
              ) : (
                <td className={`dim ${styles["wide"]}`} title={start.working_directory}>
                  {start.working_directory}
                </td>
              )}
              <td className="dim">{end?.isolation ?? "—"}</td>
              <td className={styles["right"]}>{end?.duration_ms == null ? "—" : fine(end.duration_ms)}</td>
              <td className={`faint ${styles["right"]}`}>
                <Ago at={start.started_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
