import { basename } from "node:path";
import { realpath } from "node:fs/promises";
import { BugError } from "../../../model/errors.ts";
import { maxWholeStateBytes } from "../../../model/session-state.ts";
import { type Done, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { unknownTurnFailure } from "../../scaffold/run-failure.ts";
import { getWorkspaceKind } from "../../workspace/workspace-kind.ts";
import { openClientDirectory } from "./client-directory.ts";
import {
  conversationFormat,
  packConversation,
  type SavedConversation,
  unpackConversation,
} from "./conversation-format.ts";
import type { ClientDefinition, ClientDirectory, ConversationFile, ConversationFiles, Turn } from "./definition.ts";

/** Leaves room for the header line. */
const maxBytes = maxWholeStateBytes - 1024 * 1024;

/** The conversation of a run's session, which moves with the session between runners. */
export interface OpenConversation {
  /** Set if the run had finished before its runner was lost. The client is not called again. */
  done: Done | null;
  /** The turn to run, in the found or restored session. */
  turn: Turn;
  /** Saves the client's conversation. `done` is null for a run that was stopped. */
  save(session: string | null, done: Done | null): Promise<void>;
}

export async function openConversation(
  { name: client, conversation: files }: ClientDefinition,
  { invocation, context }: Job,
  turn: Turn,
): Promise<OpenConversation> {
  const override = files.overridePath(turn.env);
  const directory = await openClientDirectory(turn, { name: files.directory, override });
  const loaded = turn.session === null ? null : await context.session.load();
  const saved = loaded === null ? null : parseSaved(client, loaded);
  const done = invocation.continues && saved?.run_id === invocation.run_id ? saved.done : null;
  if (saved !== null && done === null) await restore(files, directory, turn, saved.files, loaded?.here === true);
  const { fork_at_turn } = invocation;
  const nextTurn = fork_at_turn === null || !turn.fork ? turn : await forkAtTurn(files, directory, turn, fork_at_turn);

  async function pack(session: string, result: Done | null): Promise<{ bytes: Uint8Array; stays: boolean } | null> {
    const paths = await files.find(directory, session);
    if (paths.length === 0) return null;
    const sizes = await Promise.all(paths.map(async (path) => (await directory.stat(path))?.size ?? 0));
    const size = sizes.reduce((sum, bytes) => sum + bytes, 0);
    const stays = getWorkspaceKind(invocation) !== "scratch" || size > maxBytes;
    if (size > maxBytes)
      await context.emit({
        type: "system",
        subtype: "session_stays",
        data: { message: "The conversation is too large to move to another runner.", bytes: size, max_bytes: maxBytes },
      });
    const savedFiles = stays ? [] : await readAll(directory, paths);
    return { bytes: packConversation({ client, run_id: invocation.run_id, done: result, files: savedFiles }), stays };
  }

  return {
    done,
    turn: nextTurn,
    async save(session, result) {
      if (session === null) return;
      try {
        const packed = await pack(session, result);
        if (packed === null) return;
        await context.session.save(conversationFormat, packed.bytes, { files: true, last: true, stays: packed.stays });
      } catch (error) {
        // A failed save does not change the run's result.
        const reason = error instanceof Error ? error.message : String(error);
        const message = `The conversation could not be saved, so other runners will continue it without this run: ${reason}`;
        await context.emit({ type: "error", code: "session_not_saved", message });
      }
    },
  };
}

function parseSaved(client: string, { format, bytes }: { format: string; bytes: Uint8Array }): SavedConversation {
  const saved = format === conversationFormat ? unpackConversation(bytes) : null;
  if (saved?.client === client) return saved;
  throw new RunFailure(
    "session_not_found",
    saved === null
      ? `The state of this session has the format ${format}, which ${client} cannot continue. Start a new session.`
      : `This is a session of ${saved.client}, which ${client} cannot continue. Start a new session.`,
  );
}

/** Writes the saved files, unless this runner saved them and still has them. */
async function restore(
  files: ConversationFiles,
  directory: ClientDirectory,
  { session, workDir }: Turn,
  saved: readonly ConversationFile[],
  isLocal: boolean,
): Promise<void> {
  if (session === null) return;
  const existing = await files.find(directory, session);
  if (isLocal && existing.length > 0) return;
  for (const [index, { name, bytes }] of saved.entries()) {
    const oldPath = existing.find((path) => basename(path) === name) ?? (index === 0 ? existing[0] : undefined);
    const path = await files.locate(name, { directory, session, workDir: await realpath(workDir) });
    if (path === null)
      throw new RunFailure(
        "session_not_found",
        `The saved conversation has a file named ${JSON.stringify(name.slice(0, 100))}, which its client does not use. Start a new session.`,
      );
    await directory.write(oldPath ?? path, bytes);
  }
}

/** Copies the first turns into a new session for the client to continue. The original stays unchanged. */
async function forkAtTurn(
  files: ConversationFiles,
  directory: ClientDirectory,
  turn: Turn,
  turns: number,
): Promise<Turn> {
  const paths = await files.find(directory, turn.session ?? "");
  // The client itself reports an unknown session.
  if (paths.length === 0) return turn;
  const fork = files.cut?.(await readAll(directory, paths), turns) ?? { ok: false, turns: 0 };
  if (!fork.ok) throw unknownTurnFailure(turns, fork.turns);
  const { session, file } = fork;
  const path = await files.locate(file.name, { directory, session, workDir: await realpath(turn.workDir) });
  if (path === null) throw new BugError(`${file.name} is not a file name that its client uses`);
  await directory.write(path, file.bytes);
  return { ...turn, session, fork: false };
}

async function readAll(directory: ClientDirectory, paths: readonly string[]): Promise<ConversationFile[]> {
  const files: ConversationFile[] = [];
  for (const path of paths) {
    const bytes = await directory.read(path, maxBytes);
    if (bytes !== null) files.push({ name: basename(path), bytes });
  }
  return files;
}
