import type { RunEvent } from "../../../model/event.ts";
import type { UserInput } from "../../../model/executor.ts";
import type { NewId } from "../../../model/ids.ts";
import type { SessionStore, ToolResult, Turn } from "../../../model/provider.ts";
import { takeFirstTurns } from "../../../llm/first-turns.ts";
import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { unknownTurnFailure } from "../../scaffold/run-failure.ts";

export type ModelAnswer = Extract<Turn, { ok: true }>;

const format = "drover-loop-1";

/** The progress of a run. It resets with each run of a session, but not with each attempt. */
export interface Progress {
  turns: number;
  spent_usd: number;
  spent_tokens: number;
  /** The run's usage when its budget was last renewed. */
  before: { turns: number; spent_usd: number; spent_tokens: number };
  /** The model's last answer in this run. */
  last: Pick<ModelAnswer, "text" | "stop"> | null;
  /** Whether the run's prompt was sent. */
  prompted: boolean;
}

interface SavedState {
  session_id: string;
  /** The provider's own state. */
  conversation: unknown;
  /** Results of tool calls. The model receives them once all calls have a result. */
  results: ToolResult[];
  /** Ids of calls that are waiting for approval. */
  asked?: string[];
  /** Messages to the run that the model has not received yet. */
  inputs?: string[];
  /** The `seq` of the last message to the run. */
  heard?: number;
  progress: Progress;
}

/** The saved state of a session, with which any runner can continue it between any two steps. */
export interface LoopState {
  /** The provider saves its conversation here. It becomes durable with the next step. */
  store: SessionStore;
  /** The session to continue; null for a new one. */
  session_id: string | null;
  progress: Progress;
  /** Results of the pending calls so far. */
  results: readonly ToolResult[];
  /** Ids of calls that are waiting for approval and so have not started. */
  awaitingApproval: ReadonlySet<string>;
  /** Messages to the run that the model has not received yet. */
  inputs: readonly string[];
  /** Records the model's answer. The model has received the results and the first `inputCount` messages. */
  recordTurn(turn: ModelAnswer, inputCount: number): Promise<void>;
  /** Call this before asking a person, so that a continued run asks again. */
  recordQuestion(tool_use_id: string): Promise<void>;
  /** Call this before the tool runs, so that it never runs twice. */
  recordApproval(tool_use_id: string, events: readonly RunEvent[]): Promise<void>;
  /** Saves messages to the run until the model has received them. Ignores messages that it has saved before. */
  addInputs(newInputs: readonly UserInput[]): Promise<void>;
  /** Grants the run its whole budget again. */
  renewBudget(): Promise<void>;
  recordResult(result: ToolResult, event: RunEvent, changedFiles: boolean): Promise<void>;
  save(events: RunEvent[]): Promise<void>;
}

export async function openLoopState({ invocation, context }: Job, newId: NewId): Promise<LoopState> {
  const { mode, continues } = invocation;
  const isNew = mode === "start" && !continues;
  const savedState = isNew ? null : parseSaved(await context.session.load());
  if (!isNew && savedState === null)
    throw new RunFailure("session_not_found", "No state is stored for this session. Start a new run.");
  // A fork continues a copy under a new id.
  const session_id = savedState && mode === "fork" && !continues ? newId() : (savedState?.session_id ?? null);
  const noUsage = { turns: 0, spent_usd: 0, spent_tokens: 0 };
  const progress: Progress = {
    ...noUsage,
    before: noUsage,
    last: null,
    prompted: false,
    ...(continues ? savedState?.progress : {}),
  };
  const { fork_at_turn } = invocation;
  const isCut = fork_at_turn !== null && !continues;
  let current: Omit<SavedState, "progress"> = {
    session_id: session_id ?? "",
    conversation: isCut ? takeTurns(savedState?.conversation, fork_at_turn) : (savedState?.conversation ?? null),
    results: isCut ? [] : (savedState?.results ?? []),
  };
  const awaitingApproval = new Set(savedState?.asked);
  let inputs = (continues && savedState?.inputs) || [];
  let lastSeq = (continues && savedState?.heard) || 0;
  let queued: { events: RunEvent[]; files: boolean; done: Promise<void> } | null = null;
  let lastSave: Promise<void> = Promise.resolve();

  /** Batches the steps that finish during a save into the next save. */
  function save(events: readonly RunEvent[], files: boolean): Promise<void> {
    if (queued !== null) {
      queued.events.push(...events);
      queued.files ||= files;
      return queued.done;
    }
    const next = { events: [...events], files, done: lastSave };
    queued = next;
    next.done = lastSave.then(() => {
      queued = null;
      const bytes = Buffer.from(
        JSON.stringify({
          ...current,
          asked: [...awaitingApproval],
          inputs,
          heard: lastSeq,
          progress,
        } satisfies SavedState),
      );
      return context.session.save(format, bytes, { events: next.events, files: next.files });
    });
    lastSave = next.done.catch(() => undefined); // The caller gets the error.
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
    awaitingApproval,
    get inputs() {
      return inputs;
    },
    recordTurn({ text, stop, tool_uses }, inputCount) {
      progress.turns += 1;
      progress.last = { text, stop };
      inputs = inputs.slice(inputCount);
      awaitingApproval.clear();
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
      awaitingApproval.delete(result.tool_use_id);
      return save([event], changedFiles);
    },
    recordQuestion(tool_use_id) {
      awaitingApproval.add(tool_use_id);
      return save([], false);
    },
    recordApproval(tool_use_id, events) {
      awaitingApproval.delete(tool_use_id);
      return save(events, false);
    },
    async addInputs(newInputs) {
      const unseenInputs = newInputs.filter(({ seq }) => seq > lastSeq);
      if (unseenInputs.length === 0) return;
      inputs = [...inputs, ...unseenInputs.map(({ text }) => text)];
      lastSeq = unseenInputs.at(-1)!.seq;
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

function takeTurns(conversation: unknown, turns: number): unknown {
  const cutResult = takeFirstTurns(conversation, turns);
  if (!cutResult.ok) throw unknownTurnFailure(turns, cutResult.turns);
  return cutResult.conversation;
}

function parseSaved(loaded: { format: string; bytes: Uint8Array } | null): SavedState | null {
  if (loaded === null) return null;
  if (loaded.format !== format)
    throw new RunFailure(
      "session_not_found",
      `The state of this session has the format ${loaded.format}; this version of Drover can continue only ${format}. Start a new run.`,
    );
  // save() wrote it, and it is stored unchanged.
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as SavedState;
}
