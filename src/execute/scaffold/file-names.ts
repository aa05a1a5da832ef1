import { isUtf8 } from "node:buffer";

/** Files with longer paths are skipped, because recipients could not use them. */
export const maxPathBytes = 1024;

export type NameProblem = "name_not_utf8" | "name_has_control_characters" | "path_too_long" | "hidden_or_outside";

/** Returns the reason why a file's name cannot be shown unchanged, or null if it can. */
export function findNameProblem(path: Uint8Array): NameProblem | null {
  if (path.length > maxPathBytes) return "path_too_long";
  if (!isUtf8(path)) return "name_not_utf8";
  const text = Buffer.from(path).toString("utf8");
  if (controlCharacters.test(text)) return "name_has_control_characters";
  return text.split("/").some((part) => part === "" || part.startsWith(".")) ? "hidden_or_outside" : null;
}

/** Includes characters that reverse the text direction, which can disguise a name. */
const controlCharacters = /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069\uFEFF]/u;

/** Makes any name printable. */
export function toPrintableName(path: Uint8Array): string {
  const start = path.subarray(0, 200);
  const text = isUtf8(start)
    ? Buffer.from(start)
        .toString("utf8")
        .replaceAll(
          new RegExp(controlCharacters, "gu"),
          (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`,
        )
    : Array.from(start, (byte) =>
        byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`,
      ).join("");
  return path.length > start.length ? `${text}...` : text;
}
