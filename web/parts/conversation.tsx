import { lazy, memo, Suspense, useMemo } from "react";
import { isTerminal } from "../../src/model/states.ts";
import { conversationOf, type Item, type ToolItem } from "../data/conversation.ts";
import type { Run } from "../data/queries.ts";
import type { RunLog } from "../data/run-events.ts";
import { inputLine } from "../data/steps.ts";
import { Code } from "./code.tsx";
import { Icon } from "./icon.tsx";
import { JsonTree } from "./json-tree.tsx";
import { count, money } from "./numbers.ts";
import { OpenQuestion } from "./question-card.tsx";
import { Status } from "./status.tsx";
import { fine, useNow } from "./time.tsx";
import { ToolInput } from "./tool-input.tsx";
import styles from "./conversation.module.css";

const Markdown = lazy(async () => ({ default: (await import("./markdown.tsx")).Markdown }));

/** One run as a conversation: what was asked, what was said and done, and what came of it. */
export function Conversation({ run, log }: { run: Run; log: RunLog }) {
  const items = useMemo(() => conversationOf(log.events), [log.events]);
  const asked = run.prompt ?? (Object.keys(run.parameters).length > 0 ? null : "");
  return (
    <div className={styles["thread"]}>
      {asked === "" ? null : (
        <Bubble by={run.created_by}>
          {asked === null ? <JsonTree value={run.parameters} /> : <Text text={asked} />}
        </Bubble>
      )}
      {items.map((item) => (
        <One key={item.key} item={item} run_id={run.run_id} open={!isTerminal(run.status)} />
      ))}
      {log.partial === "" ? null : (
        <div className={styles["said"]} aria-live="off">
          <Text text={log.partial} streaming />
        </div>
      )}
      {isTerminal(run.status) || log.partial !== "" ? null : (
        <p className="faint row">
          <Status status={run.status} /> {run.waiting_for ?? ""}
        </p>
      )}
    </div>
  );
}

/** A row that has not changed is not rendered again: typing stays smooth while text arrives. */
const One = memo(function One({ item, run_id, open }: { item: Item; run_id: string; open: boolean }) {
  switch (item.kind) {
    case "user":
      return (
        <Bubble by={item.by}>
          <Text text={item.text} />
        </Bubble>
      );
    case "assistant":
      return (
        <div className={styles["said"]}>
          <Text text={item.text} />
        </div>
      );
    case "tool":
      return <ToolCard tool={item} />;
    case "question":
      if (item.decision === null && open)
        return (
          <div className={styles["card"]} data-tone="wait">
            <OpenQuestion run_id={run_id} request_id={item.request_id} />
          </div>
        );
      return (
        <div
          className={styles["card"]}
          data-tone={item.decision === null ? "wait" : item.decision === "allow" ? "ok" : "bad"}
        >
          <div className="row wrap">
            <Icon name={item.decision === null ? "wait" : item.decision === "allow" ? "ok" : "bad"} />
            <b className="mono">{item.tool}</b>
            <span className="dim">
              {item.decision === null
                ? "waits for an answer"
                : `${words[item.decision] ?? item.decision} by ${item.by ?? "nobody"}`}
            </span>
          </div>
          <ToolInput input={item.input} />
          {item.message ? <p className="dim">{item.message}</p> : null}
        </div>
      );
    case "note":
      return <p className={styles["note"]}>{item.text}</p>;
    case "error":
      return (
        <div className={styles["card"]} data-tone="bad">
          <div className="row">
            <Icon name="warn" /> <span>{item.text}</span>
          </div>
        </div>
      );
    case "usage":
      return (
        <p className={styles["note"]}>
          {count(item.usage.input_tokens)} tokens in, {count(item.usage.output_tokens)} out
          {item.usage.cost_usd === null ? "" : ` · ${money(item.usage.cost_usd)}`}
        </p>
      );
    case "result":
      return <ResultCard event={item.event} />;
    default:
      return item satisfies never;
  }
});

const words: Record<string, string> = {
  allow: "approved",
  deny: "refused",
  stop: "stopped",
  expired: "expired, asked of",
  superseded: "asked again",
};

function Bubble({ by, children }: { by: string | null; children: React.ReactNode }) {
  return (
    <div className={styles["asked"]}>
      {by ? <span className="faint">{by}</span> : null}
      <div>{children}</div>
    </div>
  );
}

function ToolCard({ tool }: { tool: ToolItem }) {
  const now = useNow();
  const took = (tool.ended === null ? now : Date.parse(tool.ended)) - Date.parse(tool.began);
  const state = tool.ended === null ? "run" : tool.is_error ? "bad" : "ok";
  return (
    <details className={styles["card"]} data-tone={state} open={tool.is_error || undefined}>
      <summary>
        <Icon name={state === "run" ? "run" : state} spin={state === "run"} />
        <b className="mono">{tool.name}</b>
        <span className="dim mono ellipsis grow">{inputLine(tool.input)}</span>
        <span className="faint">{fine(Math.max(0, took))}</span>
      </summary>
      <div className={styles["inside"]}>
        <h3>Input</h3>
        <ToolInput input={tool.input} />
        {tool.output === undefined ? null : (
          <>
            <h3>{tool.is_error ? "Error" : "Output"}</h3>
            {typeof tool.output === "string" ? <Code text={tool.output} /> : <JsonTree value={tool.output} />}
          </>
        )}
      </div>
    </details>
  );
}

function ResultCard({ event }: { event: Extract<Item, { kind: "result" }>["event"] }) {
  const hasData = event.result_data !== null && event.result_data !== undefined;
  return (
    <div
      className={styles["card"]}
      data-tone={event.status === "completed" ? "ok" : event.status === "failed" ? "bad" : "idle"}
    >
      <div className="row wrap">
        <Status status={event.status} />
        {event.exit_code === null ? null : <span className="dim">exit code {event.exit_code}</span>}
        {event.reason ? <code>{event.reason}</code> : null}
      </div>
      {event.error ? <p>{event.error}</p> : null}
      {hasData ? <JsonTree value={event.result_data} /> : null}
    </div>
  );
}

function Text({ text, streaming = false }: { text: string; streaming?: boolean }) {
  return (
    <Suspense fallback={<p style={{ whiteSpace: "pre-wrap" }}>{text}</p>}>
      <Markdown text={text} streaming={streaming} />
    </Suspense>
  );
}
