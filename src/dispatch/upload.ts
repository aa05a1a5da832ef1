import { PortError } from "../model/port-error.ts";
import type { UploadResponse, UploadRequest } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";

export interface UploadDeps {
  store: Pick<Store, "apply" | "blobs" | "read">;
  maxFileBytes: number;
  getLowDiskReason: () => string | null;
}

/**
 * Stores a file of a run. Checks that the runner holds the attempt before the bytes arrive, and again afterwards,
 * because the runner may have lost it during the upload.
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
