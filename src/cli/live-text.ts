import { stripControlCharacters } from "./strip-control-characters.ts";

/** Shows an agent's message while it is written, and lines about what the agent does. */
export interface LiveText {
  /** Shows a piece of a message as it arrives. Delivery is best effort: pieces may be missing. */
  piece(text: string): void;
  /** Takes the recorded message and shows the part of it that no piece has shown. */
  whole(text: string): void;
  /** Shows a line, after the message that is being shown. Pieces arrive before their message is recorded. */
  line(text: string): void;
  /** Ends an unfinished line, so that other output can start on a new one. */
  endLine(): void;
  end(): void;
}

export function createLiveText(print: (text: string) => void): LiveText {
  /** Shown in pieces, but not recorded yet. */
  let ahead = "";
  /** Shown from the record. Its pieces may still arrive and must not be shown again. */
  let late = "";
  let waiting: string[] = [];
  let lineIsOpen = false;

  const printText = (text: string): void => {
    if (text === "") return;
    print(`${lineIsOpen ? "" : indent}${stripControlCharacters(text).replaceAll("\n", `\n${indent}`)}`);
    lineIsOpen = true;
  };
  const endLine = (): void => {
    if (lineIsOpen) print("\n");
    lineIsOpen = false;
  };
  const showLines = (): void => {
    if (waiting.length > 0) endLine();
    for (const text of waiting) print(`${indent}${stripControlCharacters(text, { colours: true })}\n`);
    waiting = [];
  };
  return {
    piece(given) {
      const known = late.startsWith(given) ? given : given.startsWith(late) ? late : "";
      const text = given.slice(known.length);
      late = text === "" ? late.slice(known.length) : "";
      printText(text);
      ahead += text;
    },
    whole(text) {
      if (ahead.startsWith(text)) {
        // The pieces may be ahead of the record.
        ahead = ahead.slice(text.length);
        if (ahead === "") endLine();
        return showLines();
      }
      const more = text.startsWith(ahead) ? text.slice(ahead.length) : null;
      if (more === null) endLine();
      printText(more ?? text);
      endLine();
      late += more ?? "";
      ahead = "";
      showLines();
    },
    line(text) {
      waiting.push(text);
      if (ahead === "") showLines();
    },
    endLine,
    end() {
      showLines();
      endLine();
    },
  };
}

const indent = "  ";
