import { useState } from "react";

/** Returns the storage key of a draft. Each conversation has its own draft, and so does each point at which it is forked. */
export function getDraftKey(agent: string, session_id: string | null, fork: number | null): string {
  return `drover.draft.${session_id ?? agent}${fork === null ? "" : `.${fork}`}`;
}

export function saveDraft(key: string, text: string): void {
  if (text === "") localStorage.removeItem(key);
  else localStorage.setItem(key, text);
}

/** A draft stored in the browser, so that a reload does not lose it. */
export function useDraft(key: string): [text: string, setText: (text: string) => void] {
  const [text, setText] = useState(() => localStorage.getItem(key) ?? "");
  return [
    text,
    (next) => {
      setText(next);
      saveDraft(key, next);
    },
  ];
}
