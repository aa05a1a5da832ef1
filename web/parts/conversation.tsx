import { lazy, memo, type ReactNode, Suspense, useMemo } from "react";
import type { Usage } from "../../src/model/event.ts";
import { isTerminal } from "../../src/model/states.ts";
import { type Activity, inputLine, type ResultEvent, type ToolActivity } from "../data/activity.ts";
import type { Run } from "../data/queries.ts";
import type { RunLog } from "../data/run-events.ts";
import { Changes, Code, Diff, diffOf } from "./code.tsx";
import { Icon } from "./icon.tsx";
import { JsonTree } from "./json-tree.tsx";
import { count, money } from "./numbers.ts";
import { OpenQuestion } from "./question-card.tsx";
import { Status } from "./status.tsx";
import { fine, useNow } from "./time.tsx";
import { Output, ToolInput } from "./tool-input.tsx";
import styles from "./conversation.module.css";

const Markdown = lazy(async () => ({ default: (await import("./markdown.tsx")).Markdown }));

/** Renders the actions for a user's message. `turn` counts the turns of this run up to that message. */
export type MessageMenu = (message: { text: string; turn: number }) => ReactNode;

/** One run as a conversation: the prompt, what the agent said and did, and the result. */
export function Conversation({ run, log, menu }: { run: Run; log: RunLog; menu?: MessageMenu }) {
  const prompt = run.prompt ?? (Object.keys(run.parameters).length > 0 ? null : "");
  const turns = useMemo(() => turnsOf(log.activity), [log.activity]);
  const hasText = log.activity.some(({ kind }) => kind === "assistant");
  const ended = isTerminal(run.status);
  return (
    <div className={styles["thread"]}>
      {prompt === "" ? null : (
        <Bubble by={run.created_by} menu={menu && prompt !== null ? menu({ text: prompt, turn: 1 }) : null}>
          {prompt === null ? <JsonTree value={run.parameters} /> : <Text text={prompt} />}
        </Bubble>
      )}
      {log.activity.map((one) =>
        one.kind === "user" ? (
          <Bubble
            key={one.key}
            by={one.by}
            menu={menu && one.heard ? menu({ text: one.text, turn: turns.get(one.key) ?? 1 }) : null}
            note={one.heard ? null : ended ? "not read" : "not read yet"}
          >
            <Text text={one.text} />
          </Bubble>
        ) : (
          <ActivityRow key={one.key} one={one} run_id={run.run_id} open={!ended} hasText={hasText} usage={run.usage} />
        ),
      )}
      {log.partial === "" ? null : (
        <div className={styles["said"]} aria-live="off">
          <Text text={log.partial} streaming />
        </div>
      )}
      {ended || log.partial !== "" ? null : (
        <p className="faint row">
          <Status status={run.status} /> {run.waiting_for ?? ""}
        </p>
      )}
    </div>
  );
}

/** A model reads all messages since its last answer as one turn. Messages before its first answer join the prompt. */
function turnsOf(activity: readonly Activity[]): ReadonlyMap<string, number> {
  const turns = new Map<string, number>();
  let turn = 1;
  let answered = false;
  for (const one of activity)
    if (one.kind === "user" && one.heard) {
      if (answered) turn += 1;
      answered = false;
      turns.set(one.key, turn);
    } else if (one.kind === "turn") answered = true;
  return turns;
}

/** The number of turns a run added to its conversation. */
export function countTurns(activity: readonly Activity[]): number {
  return Math.max(1, ...turnsOf(activity).values());
}

type AgentActivity = Exclude<Activity, { kind: "user" }>;

/** Memoized so that only changed rows render, which keeps typing smooth while text streams in. */
const ActivityRow = memo(function ActivityRow({
  one,
  run_id,
  open,
  hasText,
  usage,
}: {
  one: AgentActivity;
  run_id: string;
  open: boolean;
  /** Whether the agent wrote any text. If not, the result card shows the result's text. */
  hasText: boolean;
  usage: Usage | null;
}) {
  switch (one.kind) {
    case "attempt":
      return one.number === 1 ? null : <p className={styles["note"]}>Attempt {one.number}</p>;
    case "turn":
    case "usage":
    case "execution":
      return null;
    case "assistant":
      return (
        <div className={styles["said"]}>
          <Text text={one.text} />
        </div>
      );
    case "tool":
      return <ToolCard tool={one} />;
    case "question":
      if (one.decision === null && open)
        return (
          <div className={styles["card"]} data-tone="wait">
            <OpenQuestion run_id={run_id} request_id={one.request_id} />
          </div>
        );
      return (
        <div
          className={styles["card"]}
          data-tone={one.decision === null ? "wait" : one.decision === "allow" ? "ok" : "bad"}
        >
          <div className="row wrap">
            <Icon name={one.decision === null ? "wait" : one.decision === "allow" ? "ok" : "bad"} />
            <b className="mono">{one.tool}</b>
            <span className="dim">
              {one.decision === null ? "was not answered" : describeDecision(one.decision, one.by)}
            </span>
          </div>
          <ToolInput input={one.input} />
          {one.message ? <p className="dim">{one.message}</p> : null}
        </div>
      );
    case "note":
      return <p className={styles["note"]}>{one.text}</p>;
    case "error":
      return (
        <div className={styles["card"]} data-tone="bad">
          <div className="row">
            <Icon name="warn" /> <span>{one.text}</span>
          </div>
        </div>
      );
    case "result":
      return <ResultCard event={one.event} usage={usage} withText={!hasText} />;
    default:
      return one satisfies never;
  }
});

function describeDecision(decision: string, by: string | null): string {
  if (decision === "expired") return "expired without an answer";
  if (decision === "superseded") return "asked again";
  return `${decisionLabels[decision] ?? decision} by ${by ?? "nobody"}`;
}

const decisionLabels: Record<string, string> = { allow: "approved", deny: "denied", stop: "stopped" };

function Bubble({
  by,
  menu,
  note = null,
  children,
}: {
  by: string | null;
  menu: ReactNode;
  note?: string | null;
  children: ReactNode;
}) {
  return (
    <div className={styles["asked"]}>
      {by || note ? <span className="faint">{[by, note].filter(Boolean).join(" · ")}</span> : null}
      <div className={styles["bubble"]}>
        {menu}
        <div>{children}</div>
      </div>
    </div>
  );
}

function ToolCard({ tool }: { tool: ToolActivity }) {
  const diff = diffOf(tool.input);
  const state = tool.to === null ? "run" : tool.output === undefined ? "idle" : tool.is_error ? "bad" : "ok";
  const short = diff !== null && diff.split("\n").length <= 30;
  return (
    <details className={styles["card"]} data-tone={state} open={tool.is_error || short || undefined}>
      <summary>
        <Icon name={state === "idle" ? "stop" : state} spin={state === "run"} />
        <b className="mono">{tool.name}</b>
        <span className="dim mono ellipsis grow">{inputLine(tool.input)}</span>
        {diff === null ? null : <Changes diff={diff} />}
        <span className="faint">
          <Took from={tool.from} to={tool.to} />
        </span>
      </summary>
      <div className={styles["inside"]}>
        {diff === null ? (
          <>
            <h3>Input</h3>
            <ToolInput input={tool.input} />
          </>
        ) : (
          <Diff text={diff} />
        )}
        {tool.output === undefined || (diff !== null && !tool.is_error) ? null : (
          <>
            <h3>{tool.is_error ? "Error" : "Output"}</h3>
            <Output value={tool.output} />
          </>
        )}
      </div>
    </details>
  );
}

/** Only an activity in progress subscribes to the clock. */
function Took({ from, to }: { from: number; to: number | null }) {
  return to === null ? <TookSoFar from={from} /> : <>{fine(Math.max(0, to - from))}</>;
}

function TookSoFar({ from }: { from: number }) {
  return <>{fine(Math.max(0, useNow() - from))}</>;
}

function ResultCard({ event, usage, withText }: { event: ResultEvent; usage: Usage | null; withText: boolean }) {
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
        {usage === null ? null : (
          <span className="faint push">
            {count(usage.input_tokens)} tokens in, {count(usage.output_tokens)} out
            {usage.cost_usd ? ` · ${money(usage.cost_usd)}` : ""}
          </span>
        )}
      </div>
      {event.error ? <p>{event.error}</p> : null}
      {hasData ? <JsonTree value={event.result_data} /> : null}
      {withText && !hasData && event.result_text ? <Code text={event.result_text} label="Result" /> : null}
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
