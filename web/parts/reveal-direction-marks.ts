const directionMarkPattern = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C]/g;

/**
 * Replaces invisible text-direction characters with their code points. They could make a command or diff look harmless
 * to the user who approves it.
 */
export function revealDirectionMarks(text: string): string {
  return text.replace(
    directionMarkPattern,
    (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}
