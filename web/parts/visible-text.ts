const unseen = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C]/g;

/**
 * Characters that change the direction of what follows are shown by their number. They could make a command or a diff
 * look like another one to the person who is asked to approve it.
 */
export function visibleText(text: string): string {
  return text.replace(unseen, (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
