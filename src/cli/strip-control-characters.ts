/**
 * Removes everything that a terminal would interpret or reorder: escape sequences, other control characters and
 * bidirectional controls. Keeps line breaks and tabs. `colours` also keeps colour sequences, except the one that hides text.
 */
export function stripControlCharacters(text: string, { colours = false } = {}): string {
  return text.replaceAll(colours ? controlCharactersExceptColours : controlCharacters, "");
}

// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\p{Bidi_Control}/gu;
const controlCharactersExceptColours =
  // oxlint-disable-next-line no-control-regex
  /\u001b(?!\[(?!(?:\d*;)*0*8[;m])[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]|\p{Bidi_Control}/gu;
