export interface ChatSearch {
  agent?: string;
  session?: string;
  /** If set, the next message starts a copy of the conversation that keeps this many turns. */
  fork?: number;
}

export function readChatSearch(params: Record<string, unknown>): ChatSearch {
  const fork = Number(params["fork"]);
  return {
    ...(typeof params["agent"] === "string" ? { agent: params["agent"] } : {}),
    ...(typeof params["session"] === "string" ? { session: params["session"] } : {}),
    ...(Number.isInteger(fork) && fork > 0 ? { fork } : {}),
  };
}
