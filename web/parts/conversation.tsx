import { lazy, memo, type ReactNode, Suspense, useMemo } from "react";
import type { Usage } from "../../src/model/event.ts";
import { hasEnded } from "../../src/model/states.ts";
import { type Activity, getResultText, summarizeInput, type ResultEvent, type ToolActivity } from "../data/activity.ts";
import type { Run } from "../data/queries.ts";
import type { RunLog } from "../data/run-events.ts";
import { Code, Diff, DiffCounts, toDiff } from "./code.tsx";
import { Icon } from "./icon.tsx";
import { JsonTree } from "./json-tree.tsx";
import { formatCount, formatMoney } from "./numbers.ts";
import { OpenQuestion } from "./question-card.tsx";
import { Status } from "./status.tsx";
import { formatDuration, useNow } from "./time.tsx";
import { ToolInput, ToolOutput } from "./tool-input.tsx";
import styles from "./conversation.module.css";

const Markdown = lazy(async () => ({ default: (await import("./markdown.tsx")).Markdown }));

/** Renders the actions for a user's message. `turn` counts the turns of this run up to that message. */
export type MessageMenu = (message: { text: string; turn: number }) => ReactNode;

/** Shows a run as a conversation: the prompt, what the agent said and did, and the result. */
export function Conversation({ run, log, menu }: { run: Run; log: RunLog; menu?: MessageMenu }) {
  const prompt = run.prompt ?? (Object.keys(run.parameters).length > 0 ? null : "");
  const turns = useMemo(() => mapMessagesToTurns(log.activity), [log.activity]);
  const hasText = log.activity.some(({ kind }) => kind === "assistant");
  const runHasEnded = hasEnded(run.status);
  return (
    <div className={styles["thread"]}>
      {prompt === "" ? null : (
        <Bubble by={run.created_by} menu={menu && prompt !== null ? menu({ text: prompt, turn: 1 }) : null}>
          {prompt === null ? <JsonTree value={run.parameters} /> : <Text text={prompt} />}
        </Bubble>
      )}
      {log.activity.map((activity) =>
        activity.kind === "user" ? (
          <Bubble
            key={activity.key}
            by={activity.by}
            menu={menu && activity.read ? menu({ text: activity.text, turn: turns.get(activity.key) ?? 1 }) : null}
            note={activity.read ? null : runHasEnded ? "not read" : "not read yet"}
          >
            <Text text={activity.text} />
          </Bubble>
        ) : (
          <ActivityRow
            key={activity.key}
            activity={activity}
            run_id={run.run_id}
            isRunActive={!runHasEnded}
            hasText={hasText}
            usage={run.usage}
          />
        ),
      )}
      {log.partial === "" ? null : (
        <div className={styles["answer"]} aria-live="off">
          <Text text={log.partial} streaming />
        </div>
      )}
      {runHasEnded || log.partial !== "" ? null : (
        <p className="faint row">
          <Status status={run.status} /> {run.waiting_for ?? ""}
        </p>
      )}
    </div>
  );
}

/**
 * Maps each message to its turn. A model reads all messages since its last response as one turn. Messages before its first
 * response belong to the prompt's turn.
 */
function mapMessagesToTurns(activity: readonly Activity[]): ReadonlyMap<string, number> {
  const turns = new Map<string, number>();
  let turn = 1;
  let hasResponded = false;
  for (const item of activity)
    if (item.kind === "user" && item.read) {
      if (hasResponded) turn += 1;
      hasResponded = false;
      turns.set(item.key, turn);
    } else if (item.kind === "turn") hasResponded = true;
  return turns;
}

/** Counts the turns that a run added to its conversation. */
export function countTurns(activity: readonly Activity[]): number {
  return Math.max(1, ...mapMessagesToTurns(activity).values());
}

type AgentActivity = Exclude<Activity, { kind: "user" }>;

/** Memoized so that only changed rows render, which keeps typing smooth while text streams in. */
const ActivityRow = memo(function ActivityRow({
  activity,
  run_id,
  isRunActive,
  hasText,
  usage,
}: {
  activity: AgentActivity;
  run_id: string;
  isRunActive: boolean;
  /** Whether the agent wrote any text. If it wrote none, the result card shows the result's text. */
  hasText: boolean;
  usage: Usage | null;
}) {
  switch (activity.kind) {
    case "attempt":
      return activity.number === 1 ? null : <p className={styles["note"]}>Attempt {activity.number}</p>;
    case "turn":
    case "usage":
    case "execution":
      return null;
    case "assistant":
      return (
        <div className={styles["answer"]}>
          <Text text={activity.text} />
        </div>
      );
    case "tool":
      return <ToolCard tool={activity} />;
    case "question":
      if (activity.decision === null && isRunActive)
        return (
          <div className={styles["card"]} data-tone="wait">
            <OpenQuestion run_id={run_id} request_id={activity.request_id} />
          </div>
        );
      return (
        <div
          className={styles["card"]}
          data-tone={activity.decision === null ? "wait" : activity.decision === "allow" ? "ok" : "bad"}
        >
          <div className="row wrap">
            <Icon name={activity.decision === null ? "wait" : activity.decision === "allow" ? "ok" : "close"} />
            <b className="mono">{activity.tool}</b>
            <span className="dim">
              {activity.decision === null ? "was not answered" : describeDecision(activity.decision, activity.by)}
            </span>
          </div>
          <ToolInput input={activity.input} />
          {activity.message ? <p className="dim">{activity.message}</p> : null}
        </div>
      );
    case "note":
      return <p className={styles["note"]}>{activity.text}</p>;
    case "error":
      return (
        <div className={styles["card"]} data-tone="bad">
          <div className="row">
            <Icon name="warn" /> <span>{activity.text}</span>
          </div>
        </div>
      );
    case "result":
      return <ResultCard event={activity.event} usage={usage} withText={!hasText} />;
    default:
      return activity satisfies never;
  }
});

function describeDecision(decision: string, by: string | null): string {
  if (decision === "expired") return "expired without an answer";
  if (decision === "superseded") return "asked again";
  const label = decisionLabels[decision] ?? decision;
  return by === null ? label : `${label} by ${by}`;
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
    <div className={styles["message"]}>
      {by || note ? <span className="faint">{[by, note].filter(Boolean).join(" · ")}</span> : null}
      <div className={styles["bubble"]}>
        {menu}
        <div>{children}</div>
      </div>
    </div>
  );
}

const toolStates = {
  running: { tone: "run", icon: "run" },
  /** The run ended before the tool returned. */
  stopped: { tone: "idle", icon: "stop" },
  failed: { tone: "bad", icon: "close" },
  succeeded: { tone: "ok", icon: "ok" },
} as const;

function getToolState({ to, output, is_error }: ToolActivity): keyof typeof toolStates {
  if (to === null) return "running";
  if (output === undefined) return "stopped";
  return is_error ? "failed" : "succeeded";
}

function ToolCard({ tool }: { tool: ToolActivity }) {
  const diff = toDiff(tool.input);
  const { tone, icon } = toolStates[getToolState(tool)];
  const isShort = diff !== null && diff.split("\n").length <= 30;
  return (
    <details className={styles["card"]} data-tone={tone} open={tool.is_error || isShort || undefined}>
      <summary>
        <Icon name={icon} spin={icon === "run"} />
        <b className="mono">{tool.name}</b>
        <span className="dim mono ellipsis grow">{summarizeInput(tool.input)}</span>
        {diff === null ? null : <DiffCounts diff={diff} />}
        <span className="faint">
          <ActivityDuration from={tool.from} to={tool.to} />
        </span>
      </summary>
      <div className={styles["body"]}>
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
            <ToolOutput value={tool.output} />
          </>
        )}
      </div>
    </details>
  );
}

/** Subscribes to the clock only while the activity is in progress. */
function ActivityDuration({ from, to }: { from: number; to: number | null }) {
  return to === null ? <ElapsedTime from={from} /> : <>{formatDuration(Math.max(0, to - from))}</>;
}

function ElapsedTime({ from }: { from: number }) {
  return <>{formatDuration(Math.max(0, useNow() - from))}</>;
}

function ResultCard({ event, usage, withText }: { event: ResultEvent; usage: Usage | null; withText: boolean }) {
  const hasData = event.result_data !== null && event.result_data !== undefined;
  const text = getResultText(event);
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
            {formatCount(usage.input_tokens)} tokens in, {formatCount(usage.output_tokens)} out
            {usage.cost_usd ? ` · ${formatMoney(usage.cost_usd)}` : ""}
          </span>
        )}
      </div>
      {event.error ? <p>{event.error}</p> : null}
      {withText && text !== null ? <Code text={text} label="Result" /> : null}
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
