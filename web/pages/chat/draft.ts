import { useState } from "react";

/** Returns the storage key of a draft. Each conversation has its own draft, and so does each point at which it is forked. */
export function getDraftKey(agent: string, session_id: string | null, fork: number | null): string {
  return `drover.draft.${session_id ?? agent}${fork === null ? "" : `.${fork}`}`;
}

export function loadDraft(key: string): string {
  return localStorage.getItem(key) ?? "";
}

export function saveDraft(key: string, text: string): void {
  if (text === "") localStorage.removeItem(key);
  else localStorage.setItem(key, text);
}

/** Returns what the user has typed since `sent` was submitted. If they have edited that text too, all of it. */
export function removeSentText(draft: string, sent: string): string {
  return draft.startsWith(sent) ? draft.slice(sent.length).trimStart() : draft;
}

/** A draft stored in the browser, so that a reload does not lose it. */
export function useDraft(key: string): [text: string, setText: (text: string) => void] {
  const [text, setText] = useState(() => loadDraft(key));
  return [
    text,
    (next) => {
      setText(next);
      saveDraft(key, next);
    },
  ];
}
