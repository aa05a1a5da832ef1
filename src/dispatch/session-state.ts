import { replaceLargeEvent } from "../model/event-size.ts";
import type {
  LoadSessionResponse,
  LoadSessionRequest,
  SaveSessionResponse,
  SaveSessionRequest,
} from "../model/runner-port.ts";
import { maxSaveBytes } from "../model/session-state.ts";
import type { Store } from "../model/store.ts";

type Owner = string | undefined;

/** A SQLite transaction blocks the process, for about 10 ms with this many files or bytes. */
const maxPerTransaction = { files: 1000, bytes: 2 * 1024 * 1024 };

export async function loadSession(
  { runner_id, epoch, run_id, attempt, files_after }: LoadSessionRequest,
  owner: Owner,
  { read }: Pick<Store, "read">,
): Promise<LoadSessionResponse> {
  const runner = { runner_id, epoch, ...(owner === undefined ? {} : { owner }) };
  const loaded = await read.session_state({ run_id, attempt, runner }, files_after);
  if (loaded === "fenced") return { load: "fenced" };
  const { state, files, more } = loaded;
  return {
    load: "loaded",
    state: state && { ...state, bytes: toBase64(state.bytes) },
    files: files.map((file) => ({ ...file, bytes: toBase64(file.bytes) })),
    more,
  };
}

/**
 * Stores many files in several transactions, as a runner does that splits its save into several requests: until the last
 * one, no other runner can continue the session.
 */
export async function saveSession(
  { runner_id, epoch, bytes, files, events, portable, all_files, ...rest }: SaveSessionRequest,
  owner: Owner,
  { apply, waitForTurn }: Pick<Store, "apply"> & { waitForTurn?: (() => Promise<void>) | undefined },
): Promise<SaveSessionResponse> {
  const runner = { runner_id, epoch, ...(owner === undefined ? {} : { owner }) };
  const state = bytes === null ? null : Buffer.from(bytes, "base64");
  const batches = splitFiles(files, state?.length ?? 0);
  let isBudgetSpent = false;
  for (const [index, batch] of batches.entries()) {
    const isLast = index === batches.length - 1;
    if (index > 0) await waitForTurn?.();
    const [saved] = await apply([
      {
        op: "save_session",
        ...rest,
        events: index === 0 ? events.map(replaceLargeEvent) : [],
        runner,
        bytes: index === 0 || isLast ? state : null,
        portable: portable && isLast,
        all_files: all_files === true && index === 0,
        files: batch.map((file) => (file.type === null ? file : { ...file, bytes: Buffer.from(file.bytes, "base64") })),
      },
    ]);
    if (!saved.ok) return saved.conflict === "gap" ? { save: "gap", n: saved.last_n } : { save: saved.conflict };
    isBudgetSpent = saved.budget !== undefined;
  }
  return { save: "saved", ...(isBudgetSpent ? { budget: "spent" } : {}) };
}

/** Returns at least one batch. Does not split a save that is too large, so that the store refuses all of it. */
function splitFiles(files: SaveSessionRequest["files"], stateBytes: number): SaveSessionRequest["files"][] {
  const batches: SaveSessionRequest["files"][] = [[]];
  let batchBytes = 0;
  let totalBytes = stateBytes;
  for (const file of files) {
    const size = file.type === null ? 0 : Buffer.byteLength(file.bytes, "base64");
    const batch = batches.at(-1)!;
    totalBytes += size;
    if (batch.length > 0 && (batch.length >= maxPerTransaction.files || batchBytes + size > maxPerTransaction.bytes)) {
      batches.push([file]);
      batchBytes = size;
    } else {
      batch.push(file);
      batchBytes += size;
    }
  }
  return totalBytes > maxSaveBytes ? [files] : batches;
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
