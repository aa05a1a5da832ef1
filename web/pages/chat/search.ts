export interface ChatSearch {
  agent?: string;
  session?: string;
  /** If set, the next message starts a copy of the conversation that keeps this many turns. */
  fork?: number;
}

export function readChatSearch(given: Record<string, unknown>): ChatSearch {
  const fork = Number(given["fork"]);
  return {
    ...(typeof given["agent"] === "string" ? { agent: given["agent"] } : {}),
    ...(typeof given["session"] === "string" ? { session: given["session"] } : {}),
    ...(Number.isInteger(fork) && fork > 0 ? { fork } : {}),
  };
}
