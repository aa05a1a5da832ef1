import { basename } from "node:path";
import { realpath } from "node:fs/promises";
import { BugError } from "../../../model/errors.ts";
import { maxWholeStateBytes } from "../../../model/session-state.ts";
import { type Done, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { fewerTurns } from "../../scaffold/run-failure.ts";
import { workspaceKindOf } from "../../workspace/workspace-kind.ts";
import { openClientFolder } from "./client-folder.ts";
import {
  conversationFormat,
  packConversation,
  type SavedConversation,
  unpackConversation,
} from "./conversation-format.ts";
import type { ClientDefinition, ClientFolder, ConversationFile, ConversationFiles, Turn } from "./definition.ts";

/** Room for the line that stands before the files. */
const maxBytes = maxWholeStateBytes - 1024 * 1024;

/** The conversation of a run's session, which moves with the session from one runner to another. */
export interface OpenConversation {
  /** The run ended before its runner was lost: this is how. The client is not called again. */
  done: Done | null;
  /** Of the run, from what was found or restored. */
  turn: Turn;
  /** Saves what the client has written of it, also of a run that was stopped (`done` null). */
  save(session: string | null, done: Done | null): Promise<void>;
}

export async function openConversation(
  { name: client, conversation: files }: ClientDefinition,
  { invocation, context }: Job,
  turn: Turn,
): Promise<OpenConversation> {
  const elsewhere = files.elsewhere(turn.env);
  const folder = await openClientFolder(turn, { name: files.folder, elsewhere });
  const loaded = turn.session === null ? null : await context.session.load();
  const saved = loaded === null ? null : read(client, loaded);
  const done = invocation.continues && saved?.run_id === invocation.run_id ? saved.done : null;
  if (saved !== null && done === null) await restore(files, folder, turn, saved.files, loaded?.here === true);
  const { fork_at_turn } = invocation;
  const from = fork_at_turn === null || !turn.fork ? turn : await cut(files, folder, turn, fork_at_turn);

  async function pack(session: string, ended: Done | null): Promise<{ bytes: Uint8Array; stays: boolean } | null> {
    const paths = await files.find(folder, session);
    if (paths.length === 0) return null;
    const sizes = await Promise.all(paths.map(async (path) => (await folder.look(path))?.size ?? 0));
    const size = sizes.reduce((sum, each) => sum + each, 0);
    const stays = workspaceKindOf(invocation) !== "scratch" || size > maxBytes;
    if (size > maxBytes)
      await context.emit({
        type: "system",
        subtype: "session_stays",
        data: { message: "The conversation is too large to move to another runner.", bytes: size, max_bytes: maxBytes },
      });
    const kept = stays ? [] : await readAll(folder, paths);
    return { bytes: packConversation({ client, run_id: invocation.run_id, done: ended, files: kept }), stays };
  }

  return {
    done,
    turn: from,
    async save(session, ended) {
      if (session === null) return;
      try {
        const packed = await pack(session, ended);
        if (packed === null) return;
        await context.session.save(conversationFormat, packed.bytes, { files: true, last: true, stays: packed.stays });
      } catch (error) {
        // what the run has done stands, whatever becomes of its conversation
        const why = error instanceof Error ? error.message : String(error);
        const message = `The conversation was not saved, so that other runners do not have this run in it: ${why}`;
        await context.emit({ type: "error", code: "session_not_saved", message });
      }
    },
  };
}

function read(client: string, { format, bytes }: { format: string; bytes: Uint8Array }): SavedConversation {
  const saved = format === conversationFormat ? unpackConversation(bytes) : null;
  if (saved?.client === client) return saved;
  throw new RunFailure(
    "session_not_found",
    saved === null
      ? `The state of this session has the format ${format}, which ${client} cannot continue. Start a new session.`
      : `This session is one of ${saved.client}, which ${client} cannot continue. Start a new session.`,
  );
}

/** What is here is as new as what was saved here. What was saved elsewhere takes the place of an older one. */
async function restore(
  files: ConversationFiles,
  folder: ClientFolder,
  { session, workDir }: Turn,
  saved: readonly ConversationFile[],
  here: boolean,
): Promise<void> {
  if (session === null) return;
  const found = await files.find(folder, session);
  if (here && found.length > 0) return;
  for (const [at, { name, bytes }] of saved.entries()) {
    const old = found.find((path) => basename(path) === name) ?? (at === 0 ? found[0] : undefined);
    const path = await files.place(name, { folder, session, workDir: await realpath(workDir) });
    if (path === null)
      throw new RunFailure(
        "session_not_found",
        `The saved conversation has a file called ${JSON.stringify(name.slice(0, 100))}, which is no name of its client's. Start a new session.`,
      );
    await folder.write(old ?? path, bytes);
  }
}

/** A copy that ends there, and that the client goes on with as if it were its own: the original is not touched. */
async function cut(files: ConversationFiles, folder: ClientFolder, turn: Turn, turns: number): Promise<Turn> {
  const paths = await files.find(folder, turn.session ?? "");
  // it says by itself that there is no such session
  if (paths.length === 0) return turn;
  const kept = files.cut?.(await readAll(folder, paths), turns) ?? { ok: false, turns: 0 };
  if (!kept.ok) throw fewerTurns(turns, kept.turns);
  const { session, file } = kept;
  const path = await files.place(file.name, { folder, session, workDir: await realpath(turn.workDir) });
  if (path === null) throw new BugError(`${file.name} is not a name of its client's`);
  await folder.write(path, file.bytes);
  return { ...turn, session, fork: false };
}

async function readAll(folder: ClientFolder, paths: readonly string[]): Promise<ConversationFile[]> {
  const all: ConversationFile[] = [];
  for (const path of paths) {
    const bytes = await folder.read(path, maxBytes);
    if (bytes !== null) all.push({ name: basename(path), bytes });
  }
  return all;
}
