import { PortError } from "../model/port-error.ts";
import type { RunnerPort, UploadResponse, UploadRequest } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import { toPortError } from "./poll.ts";

export interface UploadDeps {
  store: Pick<Store, "apply" | "blobs" | "read">;
  maxFileBytes: number;
  getLowDiskReason: () => string | null;
}

/**
 * Stores a file of a run. Checks that the runner holds the attempt before the bytes arrive, and again afterwards,
 * because the runner may have lost it meanwhile.
 */
export async function upload(
  request: UploadRequest,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  owner: string | undefined,
  { store, maxFileBytes, getLowDiskReason }: UploadDeps,
): Promise<UploadResponse> {
  const { runner_id, epoch, run_id, attempt, sha256, size } = request;
  if (size > maxFileBytes) throw new PortError("refused", describeTooLarge(size, maxFileBytes));
  const lowDiskReason = getLowDiskReason();
  if (lowDiskReason !== null) throw new PortError("away", `The coordinator is not accepting files: ${lowDiskReason}.`);
  const runner = { runner_id, epoch, ...(owner === undefined ? {} : { owner }) };
  const addUpload = { op: "add_upload", run_id, attempt, sha256, size, runner } as const;
  const [check] = await store.apply([{ ...addUpload, only_check: true }]);
  if (!check.ok) return { upload: "fenced" };
  if ((await store.blobs.put(content, { sha256, size }, signal)) === "mismatch") return { upload: "mismatch" };
  const [added] = await store.apply([addUpload]);
  return { upload: added.ok ? "stored" : "fenced" };
}

function describeTooLarge(size: number, maxFileBytes: number): string {
  return `The file has ${size} bytes; this coordinator accepts at most ${maxFileBytes}. Write smaller files, or exclude this one.`;
}

/** Returns the sessions that no longer exist. Throws if the runner is not registered. */
export async function findDeletedSessions(
  { runner_id, epoch, session_ids }: Parameters<RunnerPort["sessions"]>[0],
  owner: string | undefined,
  { read }: Pick<Store, "read">,
): Promise<{ gone: string[] }> {
  const runner = await read.runner(runner_id);
  if (runner === null || runner.status === "lost" || (owner !== undefined && runner.owner !== owner))
    throw toPortError("unknown_runner");
  if (runner.epoch !== epoch) throw toPortError("old_epoch");
  return { gone: await read.deleted_sessions(session_ids) };
}
