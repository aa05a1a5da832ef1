import type { RecordStore } from "../record/record-store.ts";

const checkEveryMs = 250;

/** Checks periodically that the record's files exist, so that an idle coordinator reports their loss too. */
export function watchRecordFiles({ storageError }: RecordStore, onError: (error: unknown) => void): () => void {
  const check = async (): Promise<void> => {
    const error = await storageError();
    if (error !== null) onError(error);
  };
  const timer = setInterval(() => void check().catch(onError), checkEveryMs).unref();
  return () => clearInterval(timer);
}
