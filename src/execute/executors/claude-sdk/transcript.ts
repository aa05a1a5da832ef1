import { randomUUID } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { UserInput } from "../../../model/executor.ts";
import { takeFirstEntries } from "../clients/claude-transcript.ts";
import { toFields, toText } from "../clients/fields.ts";
import { inSubdirectory } from "../clients/home-files.ts";
import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { createFile } from "../../scaffold/directory-walker.ts";
import { removeTree } from "../../workspace/remove-tree.ts";
import { unknownTurnFailure } from "../../scaffold/run-failure.ts";
import type { QueryMessage } from "./query.ts";
import type { RunUsage } from "./spending.ts";

const format = "claude-sdk-1";

/** One line of Claude Code's transcript. Drover does not interpret the content. */
interface Entry {
  type: string;
  uuid?: string;
}

/** The progress of the run. It resets with each run of a session, but not with each attempt. */
export interface Progress extends RunUsage {
  /** Whether the run's prompt is in the transcript. */
  prompted: boolean;
  /** Whether a deferred call is waiting to be repeated. */
  deferred: boolean;
  /** See `askCounts` in GateOptions. */
  asked: Record<string, number>;
  /** The `seq` of the last message to the run that is in the transcript. */
  heard: number;
}

interface SavedState {
  session_id: string;
  entries: Entry[];
  progress: Progress;
}

/** A session's conversation. It is saved in the record as the SDK writes it, and restored on any runner. */
export interface Transcript {
  /** The SDK options that start or resume the session. */
  getSessionOptions(): Record<string, string | boolean>;
  progress: Progress;
  /**
   * Assigns an id to a message, so that it can be recognized in the transcript. Returns an empty list for a message
   * that has one.
   */
  trackInput(input: UserInput): QueryMessage[];
  /** The SDK reads from this store and writes to it. */
  store: { load(key: StoreKey): Promise<null>; append(key: StoreKey, entries: Entry[]): Promise<void> };
  /** Call this if files may have changed, so that the next save includes them. */
  noteFileChanges(): void;
  /** Saves everything at the end of the run. Rejects if this save or an earlier one failed. */
  flush(): Promise<void>;
}

interface StoreKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

export interface TranscriptOptions {
  /** Claude Code's own directory, where it looks for transcripts. */
  configDir: string;
  /** The session's own HOME, where earlier runs may have left links; null if the run uses the operator's HOME. */
  sessionHome: string | null;
  /** Called when a save fails, because the run must not continue. */
  onSaveError: () => void;
}

export async function openTranscript(job: Job, options: TranscriptOptions): Promise<Transcript> {
  const { mode, continues, session_id: runSession } = job.invocation;
  const isNew = mode === "start" && !continues;
  const saved = isNew ? null : parseSaved(await job.context.session.load());
  // A later run must not make a call that an earlier run left deferred, because no person has approved it in this run.
  const startState = saved && !continues ? { ...saved, entries: saved.entries.map(withoutDeferral) } : saved;
  if (!isNew && startState === null)
    throw new RunFailure("session_not_found", "No conversation is stored for this session. Start a new run.");
  const isFork = mode === "fork" && !continues;
  /** The entries that a fork starts with. */
  const forkEntries = isFork ? takeTurns(startState?.entries ?? [], job.invocation.fork_at_turn) : [];
  const session_id = startState === null || isFork ? runSession : startState.session_id;
  /** A fork starts from a copy with its own id, so that the original and its file stay unchanged. */
  const source = isFork ? randomUUID() : session_id;
  const progress: Progress = (continues && startState?.progress) || createEmptyProgress();
  // The SDK writes the whole transcript of a fork.
  const entries: Entry[] = isFork ? [] : [...(startState?.entries ?? [])];
  const knownIds = new Set(entries.map(({ uuid }) => uuid));
  const expectedSeqs = new Map<string, number>();
  let lastExpected = progress.heard;
  let isDirty = false;
  let haveFilesChanged = false;
  let lastSave: Promise<void> = Promise.resolve();
  let failure: { error: unknown } | null = null;

  /** Batches the entries that arrive during a save into the next save. */
  async function saveAll(isLast: boolean): Promise<void> {
    while (isDirty && failure === null) {
      isDirty = false;
      const saveOptions = { files: haveFilesChanged, last: isLast };
      haveFilesChanged = false;
      const state: SavedState = { session_id, entries, progress };
      try {
        await job.context.session.save(format, Buffer.from(JSON.stringify(state)), saveOptions);
      } catch (error) {
        failure = { error };
        options.onSaveError();
      }
    }
  }

  const save = (isLast: boolean): Promise<void> => {
    isDirty = true;
    return (lastSave = lastSave.then(() => saveAll(isLast)));
  };

  return {
    getSessionOptions() {
      if (entries.length > 0) return { resume: session_id };
      return isFork ? { resume: source, forkSession: true, sessionId: runSession } : { sessionId: runSession };
    },
    progress,
    trackInput({ text, seq }) {
      if (seq <= lastExpected) return [];
      lastExpected = seq;
      const uuid = randomUUID();
      expectedSeqs.set(uuid, seq);
      return [{ text, uuid }];
    },
    store: {
      /**
       * Writes the transcript to Claude Code's own directory and returns null. The SDK would write a returned
       * transcript, with the login, to another directory.
       */
      async load({ projectKey, sessionId }) {
        const content = isFork && sessionId === source ? forkEntries : entries;
        await writeTranscript(options, projectKey, `${sessionId}.jsonl`, content);
        return null;
      },
      async append({ sessionId, subpath }, newEntries) {
        // A session can continue without the messages of its subagents.
        if (sessionId !== session_id || subpath !== undefined) return;
        for (const entry of newEntries) {
          if (entry.uuid !== undefined && knownIds.has(entry.uuid)) continue;
          if (entry.uuid !== undefined) knownIds.add(entry.uuid);
          entries.push(entry);
          progress.heard = Math.max(progress.heard, expectedSeqs.get(findMessageId(entry)) ?? 0);
        }
        progress.prompted ||= newEntries.some(({ type }) => type === "user");
        void save(false);
      },
    },
    noteFileChanges: () => void (haveFilesChanged = true),
    async flush() {
      if (entries.length > 0) await save(true);
      if (failure !== null) throw failure.error;
    },
  };
}

function takeTurns(entries: Entry[], turns: number | null): Entry[] {
  if (turns === null) return entries;
  const firstTurns = takeFirstEntries(entries, turns);
  if (!firstTurns.ok) throw unknownTurnFailure(turns, firstTurns.turns);
  return firstTurns.entries;
}

/** Returns the id of the user's message in this entry, even if it was added to the current turn. */
function findMessageId(entry: Entry): string {
  const attachment = "attachment" in entry ? toFields(entry.attachment) : {};
  return toText(attachment["source_uuid"] ?? entry.uuid);
}

/**
 * Marks a deferred call as cancelled. Claude Code repeats a deferred call when the session is resumed, but not a
 * cancelled one.
 */
function withoutDeferral(entry: Entry): Entry {
  const attachment = "attachment" in entry ? toFields(entry.attachment) : {};
  if (attachment["type"] !== "hook_deferred_tool") return entry;
  return Object.assign({ ...entry }, { attachment: { ...attachment, type: "hook_cancelled" } });
}

function createEmptyProgress(): Progress {
  return { turns: 0, tokens: 0, cost_usd: 0, prompted: false, deferred: false, asked: {}, heard: 0 };
}

async function writeTranscript(
  { configDir, sessionHome }: TranscriptOptions,
  projectKey: string,
  name: string,
  entries: readonly Entry[],
): Promise<void> {
  if (sessionHome === null) await mkdir(configDir, { recursive: true, mode: 0o700 });
  // The operator may have made it a link.
  const root = sessionHome ?? (await realpath(configDir));
  const path = join(sessionHome === null ? root : configDir, "projects", projectKey, name);
  await inSubdirectory(root, relative(root, dirname(path)), async (directory) => {
    await removeTree(dirname(root), path);
    await createFile(directory, name, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), 0o600);
  });
}

function parseSaved(loaded: { format: string; bytes: Uint8Array } | null): SavedState | null {
  if (loaded === null) return null;
  if (loaded.format !== format)
    throw new RunFailure(
      "session_not_found",
      `The state of this session has the format ${loaded.format}; claude-sdk can continue only ${format}. Start a new run.`,
    );
  // saveAll() wrote it, and it is stored unchanged.
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as SavedState;
}
