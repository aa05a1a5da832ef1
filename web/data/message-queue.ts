import { useMemo, useSyncExternalStore } from "react";

/** A message for a busy agent. Stored in the browser until it is sent, so that a reload does not lose it. */
export interface QueuedMessage {
  id: string;
  text: string;
  /** How many steps the run had finished when the message was written. The message is sent after the next step. */
  after: number;
  /** Whether the message was sent to the run. It stays queued until the run reads it. */
  sent: boolean;
}

export interface MessageQueue {
  messages: readonly QueuedMessage[];
  add(text: string, after: number): void;
  remove(id: string): void;
  markSent(id: string): void;
}

const noMessages: readonly QueuedMessage[] = [];

/** The message queue of a conversation, shared by all its tabs. */
export function useMessageQueue(session_id: string | null): MessageQueue {
  const store = useMemo(() => openQueue(session_id), [session_id]);
  const messages = useSyncExternalStore(store.subscribe, store.get);
  return { messages, ...store };
}

function openQueue(session_id: string | null) {
  const key = `drover.queue.${session_id}`;
  const watchers = new Set<() => void>();
  let parsedText = "";
  let messages = noMessages;

  const get = (): readonly QueuedMessage[] => {
    const stored = (session_id !== null && localStorage.getItem(key)) || "";
    if (stored !== parsedText)
      [parsedText, messages] = [stored, stored === "" ? noMessages : (JSON.parse(stored) as QueuedMessage[])];
    return messages;
  };
  const set = (next: readonly QueuedMessage[]): void => {
    if (next.length === 0) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(next));
    for (const watcher of watchers) watcher();
  };
  return {
    get,
    subscribe(watcher: () => void) {
      watchers.add(watcher);
      addEventListener("storage", watcher);
      return () => {
        watchers.delete(watcher);
        removeEventListener("storage", watcher);
      };
    },
    add: (text: string, after: number) => set([...get(), { id: crypto.randomUUID(), text, after, sent: false }]),
    remove: (id: string) => set(get().filter((message) => message.id !== id)),
    markSent: (id: string) => set(get().map((message) => (message.id === id ? { ...message, sent: true } : message))),
  };
}
