import type { RecordStore } from "../record/record-store.ts";

const placeEveryMs = 250;

/** So that one that nobody asks for anything says so too. */
export function watchRecordFiles({ storageFault }: RecordStore, tell: (fault: unknown) => void): () => void {
  const look = async (): Promise<void> => {
    const fault = await storageFault();
    if (fault !== null) tell(fault);
  };
  const timer = setInterval(() => void look().catch(tell), placeEveryMs).unref();
  return () => clearInterval(timer);
}
