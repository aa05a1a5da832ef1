export interface ChatSearch {
  agent?: string;
  session?: string;
}

export function readChatSearch(given: Record<string, unknown>): ChatSearch {
  return {
    ...(typeof given["agent"] === "string" ? { agent: given["agent"] } : {}),
    ...(typeof given["session"] === "string" ? { session: given["session"] } : {}),
  };
}
