import { stripControlCharacters } from "./strip-control-characters.ts";

/** What an agent says, shown while it says it, and lines about what it does. */
export interface LiveText {
  /** A piece as it comes. Best effort: pieces may be missing. */
  piece(text: string): void;
  /** The same whole, on the record: shows what of it was not shown yet. */
  whole(text: string): void;
  /** Waits for the text that is being shown: pieces are quicker than the record, and would be torn by what came before them. */
  line(text: string): void;
  /** Something else is shown next: it begins on a line of its own. */
  makeWay(): void;
  end(): void;
}

export function createLiveText(print: (text: string) => void): LiveText {
  /** Shown piece by piece, and not yet met on the record. */
  let ahead = "";
  /** Shown from the record before its pieces came: they may still come. */
  let late = "";
  let waiting: string[] = [];
  let lineIsOpen = false;

  const say = (text: string): void => {
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
      say(text);
      ahead += text;
    },
    whole(text) {
      if (ahead.startsWith(text)) {
        // the pieces may be further than the record
        ahead = ahead.slice(text.length);
        if (ahead === "") endLine();
        return showLines();
      }
      const more = text.startsWith(ahead) ? text.slice(ahead.length) : null;
      if (more === null) endLine();
      say(more ?? text);
      endLine();
      late += more ?? "";
      ahead = "";
      showLines();
    },
    line(text) {
      waiting.push(text);
      if (ahead === "") showLines();
    },
    makeWay: endLine,
    end() {
      showLines();
      endLine();
    },
  };
}

const indent = "  ";
