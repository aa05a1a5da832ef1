import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import type { UserInput } from "../../../model/executor.ts";
import { firstEntries } from "../clients/claude-transcript.ts";
import { fieldsOf, textOf } from "../clients/fields.ts";
import { openSubdirectory } from "../clients/home-files.ts";
import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { fewerTurns } from "../../scaffold/run-failure.ts";
import type { Prompt } from "./query.ts";
import type { Spent } from "./spending.ts";

const format = "claude-sdk-1";

/** One line of Claude Code's transcript. Drover does not interpret the content. */
interface Entry {
  type: string;
  uuid?: string;
}

/** The progress of the run. It resets with each run of a session, but not with each attempt. */
export interface Progress extends Spent {
  /** Whether the run's own message is in the transcript. */
  prompted: boolean;
  /** Whether a deferred call is waiting to be repeated. */
  deferred: boolean;
  /** See GateOptions. */
  asked: Record<string, number>;
  /** The `seq` of the last message to the run that is in the transcript. */
  heard: number;
}

interface Saved {
  session_id: string;
  entries: Entry[];
  progress: Progress;
}

/** A session's conversation. It is saved in the record as the SDK writes it, and restored on any runner. */
export interface Transcript {
  /** The SDK options that start or resume the session. */
  session(): Record<string, string | boolean>;
  progress: Progress;
  /** Assigns a message an id by which the transcript shows it as read. Returns none if it was read or is expected already. */
  expect(input: UserInput): Prompt[];
  /** The SDK reads from this store and writes to it. */
  store: { load(key: StoreKey): Promise<null>; append(key: StoreKey, entries: Entry[]): Promise<void> };
  /** Call this if files may have changed, so that the next save includes them. */
  filesChanged(): void;
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
  /** The session's own HOME around it, where runs may have left links; null if it is the operator's HOME. */
  ownHome: string | null;
  /** Called when a save fails, because the run must not continue. */
  onFault: () => void;
}

export async function openTranscript(job: Job, options: TranscriptOptions): Promise<Transcript> {
  const { mode, continues, session_id: own } = job.invocation;
  const isNew = mode === "start" && !continues;
  const saved = isNew ? null : read(await job.context.session.load());
  // A later run must not make a call that an earlier one left deferred, because nobody has allowed it here.
  const from = saved && !continues ? { ...saved, entries: saved.entries.map(withoutDeferral) } : saved;
  if (!isNew && from === null)
    throw new RunFailure("session_not_found", "The record has no conversation of this session. Start a new run.");
  const isFork = mode === "fork" && !continues;
  /** What a fork starts with. */
  const origin = isFork ? beginning(from?.entries ?? [], job.invocation.fork_at_turn) : [];
  const session_id = from === null || isFork ? own : from.session_id;
  /** A fork starts from a copy with its own id, so that the original and its file stay unchanged. */
  const source = isFork ? randomUUID() : session_id;
  const progress: Progress = (continues && from?.progress) || noProgress();
  // the SDK writes the whole transcript of a fork
  const entries: Entry[] = isFork ? [] : [...(from?.entries ?? [])];
  const known = new Set(entries.map(({ uuid }) => uuid));
  const expected = new Map<string, number>();
  let lastExpected = progress.heard;
  let dirty = false;
  let files = false;
  let saving: Promise<void> = Promise.resolve();
  let fault: { error: unknown } | null = null;

  /** Entries that arrive during a save are saved together. */
  async function saveAll(last: boolean): Promise<void> {
    while (dirty && fault === null) {
      dirty = false;
      const more = { files, last };
      files = false;
      const state: Saved = { session_id, entries, progress };
      try {
        await job.context.session.save(format, Buffer.from(JSON.stringify(state)), more);
      } catch (error) {
        fault = { error };
        options.onFault();
      }
    }
  }

  const save = (last: boolean): Promise<void> => {
    dirty = true;
    return (saving = saving.then(() => saveAll(last)));
  };

  return {
    session() {
      if (entries.length > 0) return { resume: session_id };
      return isFork ? { resume: source, forkSession: true, sessionId: own } : { sessionId: own };
    },
    progress,
    expect({ text, seq }) {
      if (seq <= lastExpected) return [];
      lastExpected = seq;
      const uuid = randomUUID();
      expected.set(uuid, seq);
      return [{ text, uuid }];
    },
    store: {
      /** Writes the transcript to Claude Code's own directory and returns null. The SDK would write a returned one, with the login, to another directory. */
      async load({ projectKey, sessionId }) {
        const content = isFork && sessionId === source ? origin : entries;
        await writeTranscript(options, projectKey, `${sessionId}.jsonl`, content);
        return null;
      },
      async append({ sessionId, subpath }, added) {
        // subagents' messages are not needed to continue
        if (sessionId !== session_id || subpath !== undefined) return;
        for (const entry of added) {
          if (entry.uuid !== undefined && known.has(entry.uuid)) continue;
          if (entry.uuid !== undefined) known.add(entry.uuid);
          entries.push(entry);
          progress.heard = Math.max(progress.heard, expected.get(messageIdOf(entry)) ?? 0);
        }
        progress.prompted ||= added.some(({ type }) => type === "user");
        void save(false);
      },
    },
    filesChanged: () => void (files = true),
    async flush() {
      if (entries.length > 0) await save(true);
      if (fault !== null) throw fault.error;
    },
  };
}

function beginning(entries: Entry[], turns: number | null): Entry[] {
  if (turns === null) return entries;
  const kept = firstEntries(entries, turns);
  if (!kept.ok) throw fewerTurns(turns, kept.turns);
  return kept.entries;
}

/** The id of the user's message in this entry, or of one added to the current turn. */
function messageIdOf(entry: Entry): string {
  const attachment = "attachment" in entry ? fieldsOf(entry.attachment) : {};
  return textOf(attachment["source_uuid"] ?? entry.uuid);
}

/** Claude Code repeats a deferred call whenever the session is resumed. It treats a cancelled one as interrupted. */
function withoutDeferral(entry: Entry): Entry {
  const attachment = "attachment" in entry ? fieldsOf(entry.attachment) : {};
  if (attachment["type"] !== "hook_deferred_tool") return entry;
  return Object.assign({ ...entry }, { attachment: { ...attachment, type: "hook_cancelled" } });
}

function noProgress(): Progress {
  return { turns: 0, tokens: 0, cost_usd: 0, prompted: false, deferred: false, asked: {}, heard: 0 };
}

async function writeTranscript(
  { configDir, ownHome }: TranscriptOptions,
  projectKey: string,
  name: string,
  entries: readonly Entry[],
): Promise<void> {
  const directory = join(configDir, "projects", projectKey);
  if (ownHome !== null) await openSubdirectory(ownHome, relative(ownHome, directory));
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, name);
  await rm(path, { force: true, recursive: true });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  try {
    await file.writeFile(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  } finally {
    await file.close();
  }
}

function read(loaded: { format: string; bytes: Uint8Array } | null): Saved | null {
  if (loaded === null) return null;
  if (loaded.format !== format)
    throw new RunFailure(
      "session_not_found",
      `The state of this session has the format ${loaded.format}; the executor claude-sdk continues ${format}. Start a new run.`,
    );
  // written by saveAll above, and stored unchanged
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as Saved;
}
