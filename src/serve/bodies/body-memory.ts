/** The memory that one request's body occupies, counted against its caller's limit. */
export interface BodyMemory {
  /** Counts bytes that have arrived. If it returns a promise, stop reading until that resolves. */
  add(bytes: number): Promise<void> | undefined;
  /** Call when the body is no longer needed. Idempotent. */
  release(): void;
}

export type AcquireBodyMemory = (caller: string) => BodyMemory;

const maxBodyBytes = 64 * 1024 * 1024;
/** Smaller bodies are not counted. The limit on open requests keeps their sum small. */
const maxUncountedBytes = 64 * 1024;

interface BodyState {
  bytes: number;
  resume: (() => void) | null;
}

interface Caller {
  bytes: number;
  /** Oldest first. */
  bodies: Set<BodyState>;
}

/**
 * Above the limit, only the caller's oldest body is read further, so one of them always completes. The others wait: their
 * senders are slowed down, but nothing is refused.
 */
export function createBodyMemory(max = maxBodyBytes): AcquireBodyMemory {
  const callers = new Map<string, Caller>();
  return (name) => {
    const body: BodyState = { bytes: 0, resume: null };
    let caller: Caller | null = null;
    const startCounting = (): Caller => {
      const countedCaller = callers.get(name) ?? { bytes: 0, bodies: new Set() };
      callers.set(name, countedCaller);
      countedCaller.bodies.add(body);
      countedCaller.bytes += body.bytes;
      return countedCaller;
    };
    return {
      add(bytes) {
        if (caller) caller.bytes += bytes;
        body.bytes += bytes;
        if (body.bytes <= maxUncountedBytes) return undefined;
        caller ??= startCounting();
        if (canContinue(caller, body, max)) return undefined;
        return new Promise((resolve) => (body.resume = resolve));
      },
      release() {
        if (!caller?.bodies.delete(body)) return;
        caller.bytes -= body.bytes;
        body.resume?.();
        for (const waiting of caller.bodies) if (canContinue(caller, waiting, max)) waiting.resume?.();
        if (caller.bodies.size === 0 && callers.get(name) === caller) callers.delete(name);
      },
    };
  };
}

function canContinue({ bytes, bodies }: Caller, body: BodyState, max: number): boolean {
  if (bytes <= max) return true;
  const [oldest] = bodies;
  return oldest === body;
}
