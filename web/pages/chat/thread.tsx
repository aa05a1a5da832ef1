import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { type Agent, queries } from "../../data/queries.ts";
import { useRunEvents } from "../../data/run-events.ts";
import { IconButton } from "../../parts/button.tsx";
import { copyText } from "../../parts/command.tsx";
import { Conversation, countTurns, type MessageMenu } from "../../parts/conversation.tsx";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Menu } from "../../parts/menu.tsx";
import { formatShortId } from "../../parts/numbers.ts";
import { Age } from "../../parts/time.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { getDraftKey, saveDraft } from "./draft.ts";
import styles from "./page.module.css";

interface Props {
  agent: Agent | null;
  /** Runs inherited from the conversations that this one was forked from. */
  inheritedRunIds: readonly string[];
  run_ids: readonly string[];
  isLoading: boolean;
  /** The session's id, or null if the conversation cannot be forked at a turn. */
  forkableSessionId: string | null;
}

export function Thread({ agent, inheritedRunIds, run_ids, isLoading, forkableSessionId }: Props) {
  const scrollBox = useRef<HTMLDivElement>(null);
  const followsEnd = useRef(true);
  /** The number of turns each run added. */
  const turns = useRef(new Map<string, number>());
  useEffect(() => {
    const element = scrollBox.current!;
    const observer = new ResizeObserver(() => {
      if (followsEnd.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element.firstElementChild!);
    return () => observer.disconnect();
  }, []);
  const allRunIds = [...inheritedRunIds, ...run_ids];
  const countTurnsBefore = (run_id: string): number =>
    allRunIds.slice(0, allRunIds.indexOf(run_id)).reduce((sum, earlier) => sum + (turns.current.get(earlier) ?? 1), 0);
  return (
    <div
      ref={scrollBox}
      className={styles["thread"]}
      tabIndex={0}
      role="log"
      aria-label="Conversation"
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) =>
        (followsEnd.current = scrollTop + clientHeight > scrollHeight - 60)
      }
    >
      <div className={styles["runs"]}>
        {isLoading ? (
          <Skeleton rows={4} />
        ) : allRunIds.length === 0 ? (
          <EmptyState icon="chat" title={agent ? `Talk to ${agent.name}` : "Choose an agent"}>
            <p>
              {agent?.description ??
                "An autonomous agent answers in a conversation; a procedural one asks for its parameters and returns its result."}
            </p>
          </EmptyState>
        ) : (
          allRunIds.map((run_id, index) => (
            <RunSection
              key={run_id}
              run_id={run_id}
              isFirstAfterFork={inheritedRunIds.length > 0 && index === inheritedRunIds.length}
              forkableSessionId={agent ? forkableSessionId : null}
              countTurnsBefore={() => countTurnsBefore(run_id)}
              onTurns={(count) => void turns.current.set(run_id, count)}
            />
          ))
        )}
      </div>
    </div>
  );
}

function RunSection({
  run_id,
  isFirstAfterFork,
  forkableSessionId,
  countTurnsBefore,
  onTurns,
}: {
  run_id: string;
  isFirstAfterFork: boolean;
  forkableSessionId: string | null;
  countTurnsBefore: () => number;
  onTurns: (count: number) => void;
}) {
  const run = useQuery(queries.run(run_id));
  const log = useRunEvents(run_id);
  useEffect(() => onTurns(countTurns(log.activity)));
  if (run.data === undefined) return <Skeleton rows={2} />;
  const { agent_name, created_at } = run.data;
  const menu: MessageMenu | undefined =
    forkableSessionId === null
      ? undefined
      : ({ text, turn }) => (
          <TurnMenu
            text={text}
            run_id={run_id}
            agent_name={agent_name}
            session_id={forkableSessionId}
            turn={() => countTurnsBefore() + turn}
          />
        );
  return (
    <section aria-label={`Run ${formatShortId(run_id)}`}>
      {isFirstAfterFork ? (
        <p className={styles["forked"]}>
          <Icon name="fork" small /> forked here
        </p>
      ) : null}
      <p className={styles["run-link"]}>
        <Link to="/runs/$runId" params={{ runId: run_id }}>
          run <span className="mono">{formatShortId(run_id)}</span>
        </Link>
        <Age at={created_at} suffix=" ago" />
      </p>
      <Conversation run={run.data} log={log} {...(menu ? { menu } : {})} />
    </section>
  );
}

/** Actions for one message of the conversation. */
function TurnMenu({
  text,
  run_id,
  agent_name,
  session_id,
  turn,
}: {
  text: string;
  run_id: string;
  agent_name: string;
  session_id: string;
  /** The turn's number in the conversation. */
  turn: () => number;
}) {
  const navigate = useNavigate();
  const forkAfter = (turns: number): void =>
    void navigate({ to: "/chat", search: { session: session_id, fork: turns } });
  const askAgain = (): void => {
    const keptTurns = turn() - 1;
    saveDraft(getDraftKey(agent_name, keptTurns === 0 ? null : session_id, keptTurns === 0 ? null : keptTurns), text);
    if (keptTurns > 0) forkAfter(keptTurns);
    // Nothing precedes the first turn, so start a new conversation.
    else void navigate({ to: "/chat", search: { agent: agent_name } });
  };
  return (
    <Menu
      trigger={<IconButton icon="more" label="Actions for this turn" />}
      entries={[
        { icon: "fork", text: "Fork after this turn", onSelect: () => forkAfter(turn()) },
        { icon: "edit", text: "Edit and ask again", onSelect: askAgain },
        {
          icon: "copy",
          text: "Copy",
          onSelect: () => void copyText(text).then(() => toast("Copied the message"), toastError),
        },
        {
          icon: "runs",
          text: "Open the run",
          onSelect: () => void navigate({ to: "/runs/$runId", params: { runId: run_id } }),
        },
      ]}
    />
  );
}
