import { useQuery } from "@tanstack/react-query";
import { api } from "../../data/client.ts";
import { queries, queryClient, type Runner } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Command } from "../../parts/command.tsx";
import { Empty, Skeleton } from "../../parts/empty.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Ago, coarse, useNow } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import tableStyles from "../../parts/table.module.css";
import styles from "./page.module.css";

export function Page() {
  const runners = useQuery(queries.runners());
  const me = useQuery(queries.me());
  return (
    <>
      <h1 style={{ marginBottom: 12 }}>Runners</h1>
      {runners.isError ? <ErrorNote error={runners.error} /> : null}
      <Card flush>
        {runners.isPending ? (
          <Skeleton />
        ) : runners.data?.length === 0 ? (
          <Empty icon="runners" title="No runner is registered">
            <p>Start one here, with every profile that is found:</p>
            <Command text="drover runner" />
          </Empty>
        ) : (
          <div className={tableStyles["scroll"]} tabIndex={0} role="region" aria-label="Runners">
            <table className={tableStyles["table"]}>
              <thead>
                <tr>
                  <th>State</th>
                  <th>Profile</th>
                  <th>Host</th>
                  <th>Directory</th>
                  <th>Tags</th>
                  <th>Agents</th>
                  <th>Slots</th>
                  <th className={tableStyles["right"]}>Heartbeat</th>
                  <th className={tableStyles["right"]}>Since</th>
                  <th>
                    <span className="hidden-visually">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {runners.data?.map((runner) => (
                  <Row
                    key={runner.runner_id}
                    runner={runner}
                    may={me.data?.role === "admin" || me.data?.role === "user"}
                  />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
    </>
  );
}

function Row({ runner, may }: { runner: Runner; may: boolean }) {
  const draining = runner.status === "draining";
  const drain = (): void =>
    void api.runners.drain(runner.runner_id, !draining).then(() => {
      toast(draining ? "It gets runs again" : "It gets no further runs");
      return queryClient.invalidateQueries({ queryKey: ["runners"] });
    }, toastError);
  return (
    <tr>
      <td>
        <State runner={runner} />
      </td>
      <td>
        <b className={styles["name"]}>{runner.name ?? runner.executor_profile}</b>
        <span className="faint"> {runner.executor.type}</span>
      </td>
      <td className="dim">{runner.hostname}</td>
      <td className={`dim mono ${tableStyles["wide"]}`} title={runner.project_dir}>
        {runner.project_dir}
      </td>
      <td className="dim">{runner.tags.join(", ") || "—"}</td>
      <td className={`dim ${tableStyles["wide"]}`} title={runner.agents.join(", ")}>
        {runner.agents.join(", ") || "any"}
      </td>
      <td>
        <span className={styles["slots"]} aria-label={`${runner.running} of ${runner.slots} slots busy`}>
          {Array.from({ length: Math.min(runner.slots, 12) }, (_, index) => (
            <i key={index} data-busy={index < runner.running || undefined} />
          ))}
          <span className="dim">
            {runner.running}/{runner.slots}
          </span>
        </span>
      </td>
      <td className={tableStyles["right"]}>
        <Heartbeat at={runner.last_seen_at} />
      </td>
      <td className={`faint ${tableStyles["right"]}`}>
        <Ago at={runner.registered_at} />
      </td>
      <td className={tableStyles["right"]}>
        <Button
          look="quiet"
          disabledBecause={may ? (runner.status === "lost" ? "It is lost" : null) : "Your token may not"}
          onClick={drain}
        >
          {draining ? "Resume" : "Drain"}
        </Button>
      </td>
    </tr>
  );
}

function State({ runner }: { runner: Runner }) {
  const { icon, word } = {
    online: { icon: "ok", word: "Online" },
    draining: { icon: "wait", word: "Draining" },
    lost: { icon: "bad", word: "Lost" },
  }[runner.status] as { icon: "ok" | "wait" | "bad"; word: string };
  return (
    <span className={styles["state"]} data-state={runner.status}>
      <Icon name={icon} /> {word}
    </span>
  );
}

function Heartbeat({ at }: { at: string }) {
  const age = useNow() - Date.parse(at);
  return (
    <time dateTime={at} className={age > 10_000 ? styles["late"] : "dim"}>
      {age < 5000 ? "now" : `${coarse(age)} ago`}
    </time>
  );
}
