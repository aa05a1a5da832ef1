import type { RunEvent } from "../../../model/event.ts";
import type { UserInput } from "../../../model/executor.ts";
import type { NewId } from "../../../model/ids.ts";
import type { SessionStore, ToolResult, Turn } from "../../../model/provider.ts";
import { firstTurns } from "../../../llm/first-turns.ts";
import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { fewerTurns } from "../../scaffold/run-failure.ts";

export type Answered = Extract<Turn, { ok: true }>;

const format = "drover-loop-1";

/** How far a run has come. It starts anew with each run of a session, and not with each attempt. */
export interface Progress {
  turns: number;
  spent_usd: number;
  spent_tokens: number;
  /** What it had spent when its budget was renewed, which was when it was parked for that. */
  before: { turns: number; spent_usd: number; spent_tokens: number };
  /** The model's last answer to this run. The run's own message was sent where `prompted`. */
  last: Pick<Answered, "text" | "stop"> | null;
  prompted: boolean;
}

interface Saved {
  session_id: string;
  /** The provider's own. */
  conversation: unknown;
  /** Of tools the model has called; it gets them when there are all. */
  results: ToolResult[];
  /** Calls that wait for approval. */
  asked?: string[];
  /** What people said to the run and the model has not heard yet. */
  inputs?: string[];
  /** The `seq` of the last of all that people said to the run. */
  heard?: number;
  progress: Progress;
}

/** What the loop keeps of a session: enough to continue it on any runner, between any two steps. */
export interface LoopState {
  /** Where the provider finds and puts the conversation. It is saved with the next step. */
  store: SessionStore;
  /** The session to continue; null for a new one. */
  session_id: string | null;
  progress: Progress;
  /** Results of pending calls that are known already. */
  results: readonly ToolResult[];
  /** Calls that wait for approval, and so have not begun. */
  asked: ReadonlySet<string>;
  /** What people said to the run and the model has not heard yet. */
  inputs: readonly string[];
  /** The model has answered, and so has seen the results and this many of the inputs. */
  answered(turn: Answered, inputs: number): Promise<void>;
  /** Saved before a person is asked, so that a run that continues asks again. */
  asks(tool_use_id: string): Promise<void>;
  /** Saved before the tool runs, so that it never runs twice. */
  approved(tool_use_id: string, events: readonly RunEvent[]): Promise<void>;
  /** What people said to the run, saved until the model has heard it. Those that the state knows are ignored. */
  heard(said: readonly UserInput[]): Promise<void>;
  /** From here on the run may spend its budget once more. */
  renewBudget(): Promise<void>;
  returned(result: ToolResult, event: RunEvent, changedFiles: boolean): Promise<void>;
  save(events: RunEvent[]): Promise<void>;
}

export async function openLoopState({ invocation, context }: Job, newId: NewId): Promise<LoopState> {
  const { mode, continues } = invocation;
  const isNew = mode === "start" && !continues;
  const from = isNew ? null : read(await context.session.load());
  if (!isNew && from === null)
    throw new RunFailure("session_not_found", "The record has no state of this session. Start a new run.");
  // a fork continues a copy under a name of its own
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

  /** Steps that end while one is being saved are saved together. */
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
    last = next.done.catch(() => undefined); // who asked for it is told
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
    answered({ text, stop, tool_uses }, delivered) {
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
      const said: RunEvent[] = text === "" ? [] : [{ type: "assistant", text }];
      return save([...said, ...uses], false);
    },
    returned(result, event, changedFiles) {
      current = { ...current, results: [...current.results, result] };
      asked.delete(result.tool_use_id);
      return save([event], changedFiles);
    },
    asks(tool_use_id) {
      asked.add(tool_use_id);
      return save([], false);
    },
    approved(tool_use_id, events) {
      asked.delete(tool_use_id);
      return save(events, false);
    },
    async heard(said) {
      const news = said.filter(({ seq }) => seq > heard);
      if (news.length === 0) return;
      inputs = [...inputs, ...news.map(({ text }) => text)];
      heard = news.at(-1)!.seq;
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
  // Written by save above; the record keeps it as it was.
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as Saved;
}
