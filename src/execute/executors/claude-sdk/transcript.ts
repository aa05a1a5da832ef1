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

/** One line of Claude Code's transcript. Its content is Claude Code's own affair. */
interface Entry {
  type: string;
  uuid?: string;
}

/** How far the run has come. It starts anew with each run of a session, and not with each attempt. */
export interface Progress extends Spent {
  /** The run's own message is in the transcript. */
  prompted: boolean;
  /** A call waits to be made again. */
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

/** The conversation of a session: kept in the record as the SDK writes it, and given back to it on any runner. */
export interface Transcript {
  /** How the SDK is to begin. */
  session(): Record<string, string | boolean>;
  progress: Progress;
  /** Names a message to the run, so that the transcript shows when it was heard. None where it was before, or is expected already. */
  expect(input: UserInput): Prompt[];
  /** For the SDK: it reads from here and writes to it. */
  store: { load(key: StoreKey): Promise<null>; append(key: StoreKey, entries: Entry[]): Promise<void> };
  /** Files may have changed: the next save brings them along. */
  filesChanged(): void;
  /** Saves what is not saved yet, as the last thing of the run. Rejects where that failed, now or before. */
  flush(): Promise<void>;
}

interface StoreKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

export interface TranscriptPlace {
  /** Claude Code's own folder, where it looks for transcripts. */
  folder: string;
  /** The HOME of the session's own that it lies in, where runs may have put links; null where it is the operator's. */
  ownHome: string | null;
  /** A save has failed: the run cannot go on. */
  onFault: () => void;
}

export async function openTranscript(job: Job, place: TranscriptPlace): Promise<Transcript> {
  const { mode, continues, session_id: own } = job.invocation;
  const isNew = mode === "start" && !continues;
  const saved = isNew ? null : read(await job.context.session.load());
  // A call that a run before this one left waiting is not made by this one: nobody has allowed it here.
  const from = saved && !continues ? { ...saved, entries: saved.entries.map(withoutDeferral) } : saved;
  if (!isNew && from === null)
    throw new RunFailure("session_not_found", "The record has no conversation of this session. Start a new run.");
  const isFork = mode === "fork" && !continues;
  /** What a fork begins with. */
  const origin = isFork ? beginning(from?.entries ?? [], job.invocation.fork_at_turn) : [];
  const session_id = from === null || isFork ? own : from.session_id;
  /** A copy is forked under a name of its own: the original is not touched, not even its file. */
  const source = isFork ? randomUUID() : session_id;
  const progress: Progress = (continues && from?.progress) || noProgress();
  // a fork is written anew by the SDK, whole
  const entries: Entry[] = isFork ? [] : [...(from?.entries ?? [])];
  const known = new Set(entries.map(({ uuid }) => uuid));
  const expected = new Map<string, number>();
  let lastExpected = progress.heard;
  let dirty = false;
  let files = false;
  let saving: Promise<void> = Promise.resolve();
  let fault: { error: unknown } | null = null;

  /** Entries that arrive while some are being saved are saved together. */
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
        place.onFault();
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
      /** Written where Claude Code itself keeps it, and not handed back: the SDK would put it, with the login, into a folder of its own. */
      async load({ projectKey, sessionId }) {
        const content = isFork && sessionId === source ? origin : entries;
        await writeTranscript(place, projectKey, `${sessionId}.jsonl`, content);
        return null;
      },
      async append({ sessionId, subpath }, added) {
        // what subagents said is not needed to continue
        if (sessionId !== session_id || subpath !== undefined) return;
        for (const entry of added) {
          if (entry.uuid !== undefined && known.has(entry.uuid)) continue;
          if (entry.uuid !== undefined) known.add(entry.uuid);
          entries.push(entry);
          progress.heard = Math.max(progress.heard, expected.get(nameIn(entry)) ?? 0);
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

/** Of the user's message that an entry is, or that was added to the turn under way. */
function nameIn(entry: Entry): string {
  const attachment = "attachment" in entry ? fieldsOf(entry.attachment) : {};
  return textOf(attachment["source_uuid"] ?? entry.uuid);
}

/** Claude Code makes a deferred call again whenever the session is resumed; a cancelled one it calls interrupted. */
function withoutDeferral(entry: Entry): Entry {
  const attachment = "attachment" in entry ? fieldsOf(entry.attachment) : {};
  if (attachment["type"] !== "hook_deferred_tool") return entry;
  return Object.assign({ ...entry }, { attachment: { ...attachment, type: "hook_cancelled" } });
}

function noProgress(): Progress {
  return { turns: 0, tokens: 0, cost_usd: 0, prompted: false, deferred: false, asked: {}, heard: 0 };
}

async function writeTranscript(
  { folder, ownHome }: TranscriptPlace,
  projectKey: string,
  name: string,
  entries: readonly Entry[],
): Promise<void> {
  const directory = join(folder, "projects", projectKey);
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
  // Written by saveAll above; the record keeps it as it was.
  return JSON.parse(Buffer.from(loaded.bytes).toString("utf8")) as Saved;
}
