import type { RunEvent } from "../../../model/event.ts";
import type { UserInput } from "../../../model/executor.ts";
import type { NewId } from "../../../model/ids.ts";
import type { SessionStore, ToolResult, Turn } from "../../../model/provider.ts";
import { firstTurns } from "../../../llm/first-turns.ts";
import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { fewerTurns } from "../../scaffold/run-failure.ts";

export type Answered = Extract<Turn, { ok: true }>;

const format = "drover-loop-1";

/** The progress of a run. It resets with each run of a session, but not with each attempt. */
export interface Progress {
  turns: number;
  spent_usd: number;
  spent_tokens: number;
  /** What the run had spent when its budget was last renewed. */
  before: { turns: number; spent_usd: number; spent_tokens: number };
  /** The model's last answer in this run. `prompted` is set once the run's own message was sent. */
  last: Pick<Answered, "text" | "stop"> | null;
  prompted: boolean;
}

interface Saved {
  session_id: string;
  /** The provider's own state. */
  conversation: unknown;
  /** Results of tool calls. The model receives them once all are there. */
  results: ToolResult[];
  /** Ids of calls that are waiting for approval. */
  asked?: string[];
  /** Messages to the run that the model has not received yet. */
  inputs?: string[];
  /** The `seq` of the last message to the run. */
  heard?: number;
  progress: Progress;
}

/** The saved state of a session: enough to continue it on any runner, between any two steps. */
export interface LoopState {
  /** Where the provider loads and saves the conversation. It is stored with the next step. */
  store: SessionStore;
  /** The session to continue; null for a new one. */
  session_id: string | null;
  progress: Progress;
  /** Known results of pending calls. */
  results: readonly ToolResult[];
  /** Ids of calls that are waiting for approval and so have not started. */
  asked: ReadonlySet<string>;
  /** Messages to the run that the model has not received yet. */
  inputs: readonly string[];
  /** Records the model's answer. The model has now seen the results and `inputs` of the messages. */
  recordTurn(turn: Answered, inputs: number): Promise<void>;
  /** Saved before a person is asked, so that a continued run asks again. */
  recordQuestion(tool_use_id: string): Promise<void>;
  /** Saved before the tool runs, so that it never runs twice. */
  recordApproval(tool_use_id: string, events: readonly RunEvent[]): Promise<void>;
  /** Saves messages to the run until the model has received them. Ignores those that it already knows. */
  addInputs(given: readonly UserInput[]): Promise<void>;
  /** Lets the run spend its budget once more. */
  renewBudget(): Promise<void>;
  recordResult(result: ToolResult, event: RunEvent, changedFiles: boolean): Promise<void>;
  save(events: RunEvent[]): Promise<void>;
}

export async function openLoopState({ invocation, context }: Job, newId: NewId): Promise<LoopState> {
  const { mode, continues } = invocation;
  const isNew = mode === "start" && !continues;
  const from = isNew ? null : read(await context.session.load());
  if (!isNew && from === null)
    throw new RunFailure("session_not_found", "The record has no state of this session. Start a new run.");
  // a fork continues a copy under a new id
  const session_id = from && mode === "fork" && !continues ? newId() : (from?.session_id ?? null);
  const nothing = { turns: 0, spent_usd: 0, spent_tokens: 0 };
  const progress: Progress = {
    ...nothing,
    before: nothing,
    last: null,
    prompted: false,
    ...(continues ? from?.progress : {}),
  };
  const { fork_at_turn } = invocation;
  const isCut = fork_at_turn !== null && !continues;
  let current: Omit<Saved, "progress"> = {
    session_id: session_id ?? "",
    conversation: isCut ? cut(from?.conversation, fork_at_turn) : (from?.conversation ?? null),
    results: isCut ? [] : (from?.results ?? []),
  };
  const asked = new Set(from?.asked);
  let inputs = (continues && from?.inputs) || [];
  let heard = (continues && from?.heard) || 0;
  let waiting: { events: RunEvent[]; files: boolean; done: Promise<void> } | null = null;
  let last: Promise<void> = Promise.resolve();

  /** Steps that finish during a save are saved together. */
  function save(events: readonly RunEvent[], files: boolean): Promise<void> {
    if (waiting !== null) {
      waiting.events.push(...events);
      waiting.files ||= files;
      return waiting.done;
    }
    const next = { events: [...events], files, done: last };
    waiting = next;
    next.done = last.then(() => {
      waiting = null;
      const bytes = Buffer.from(
        JSON.stringify({ ...current, asked: [...asked], inputs, heard, progress } satisfies Saved),
      );
      return context.session.save(format, bytes, { events: next.events, files: next.files });
    });
    last = next.done.catch(() => undefined); // the caller gets the error
    return next.done;
  }

  return {
    session_id,
    progress,
    get results() {
      return current.results;
    },
    store: {
      load: async (id) => (id === current.session_id ? current.conversation : null),
      async save(id, conversation) {
        current = { ...current, session_id: id, conversation };
      },
    },
    asked,
    get inputs() {
      return inputs;
    },
    recordTurn({ text, stop, tool_uses }, delivered) {
      progress.turns += 1;
      progress.last = { text, stop };
      inputs = inputs.slice(delivered);
      asked.clear();
      current = { ...current, results: [] };
      const uses = tool_uses.map(({ tool_use_id, name, input }): RunEvent => ({
        type: "tool_use",
        tool_use_id,
        name,
        input,
      }));
      const texts: RunEvent[] = text === "" ? [] : [{ type: "assistant", text }];
      return save([...texts, ...uses], false);
    },
    recordResult(result, event, changedFiles) {
      current = { ...current, results: [...current.results, result] };
      asked.delete(result.tool_use_id);
      return save([event], changedFiles);
    },
    recordQuestion(tool_use_id) {
      asked.add(tool_use_id);
      return save([], false);
    },
    recordApproval(tool_use_id, events) {
      asked.delete(tool_use_id);
      return save(events, false);
    },
    async addInputs(given) {
      const added = given.filter(({ seq }) => seq > heard);
      if (added.length === 0) return;
      inputs = [...inputs, ...added.map(({ text }) => text)];
      heard = added.at(-1)!.seq;
      await save([], false);
    },
    renewBudget() {
      const { turns, spent_usd, spent_tokens } = progress;
      progress.before = { turns, spent_usd, spent_tokens };
      return save([], false);
    },
    save: (events) => save(events, false),
  };
}

function cut(conversation: unknown, turns: number): unknown {
  const kept = firstTurns(conversation, turns);
  if (!kept.ok) throw fewerTurns(turns, kept.turns);
  return kept.conversation;
}

function read(loaded: { format: string; bytes: Uint8Array } | null): Saved | null {
  if (loaded === null) return null;
  if (loaded.format !== format)
    throw new RunFailure(
      "session_not_found",
      `The state of this session has the format ${loaded.format}; this version of Drover continues ${format}. Start a new run.`,
    );
  // written by save above, and stored unchanged
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as Saved;
}
