/** A request's share of what the bodies of one caller may take up in memory. */
export interface BodyMemory {
  /** Bytes that have come. A promise: read no further before it resolves. */
  take(bytes: number): Promise<void> | undefined;
  /** The body is no longer needed. Idempotent. */
  leave(): void;
}

export type AcquireBodyMemory = (caller: string) => BodyMemory;

const maxBodyBytes = 64 * 1024 * 1024;
/** Smaller ones are not counted: so many requests are not open that they come to much. */
const small = 64 * 1024;

interface Reading {
  bytes: number;
  goOn: (() => void) | null;
}

interface Caller {
  bytes: number;
  /** The oldest first. */
  bodies: Set<Reading>;
}

/**
 * Beyond the limit only the oldest body of a caller is read on, so that one of them always gets to its end. The others wait
 * unread: their senders are slowed down, and nothing is refused.
 */
export function createBodyMemory(most = maxBodyBytes): AcquireBodyMemory {
  const callers = new Map<string, Caller>();
  return (name) => {
    const body: Reading = { bytes: 0, goOn: null };
    let caller: Caller | null = null;
    const enter = (): Caller => {
      const entered = callers.get(name) ?? { bytes: 0, bodies: new Set() };
      callers.set(name, entered);
      entered.bodies.add(body);
      entered.bytes += body.bytes;
      return entered;
    };
    return {
      take(bytes) {
        if (caller) caller.bytes += bytes;
        body.bytes += bytes;
        if (body.bytes <= small) return undefined;
        caller ??= enter();
        if (mayGoOn(caller, body, most)) return undefined;
        return new Promise((resolve) => (body.goOn = resolve));
      },
      leave() {
        if (!caller?.bodies.delete(body)) return;
        caller.bytes -= body.bytes;
        body.goOn?.();
        for (const other of caller.bodies) if (mayGoOn(caller, other, most)) other.goOn?.();
        if (caller.bodies.size === 0 && callers.get(name) === caller) callers.delete(name);
      },
    };
  };
}

function mayGoOn({ bytes, bodies }: Caller, body: Reading, most: number): boolean {
  if (bytes <= most) return true;
  const [oldest] = bodies;
  return oldest === body;
}
