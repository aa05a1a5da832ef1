import type { Key } from "./keys.ts";
import { textWidth } from "./text-width.ts";

/** A text input that may span several lines. */
export interface Editor {
  readonly text: string;
  set(text: string): void;
  /** Returns false if the editor does not use this key. `enter` submits the text to `onSubmit`. */
  handle(key: Key): boolean;
  /** The rows of the text after a prompt, and the cursor position. */
  show(prompt: string, columns: number): { rows: string[]; cursor: { row: number; column: number } };
}

/** `history` has earlier inputs, oldest first. The arrow keys step through it. */
export function createEditor(onSubmit: (text: string) => void, history: readonly string[] = []): Editor {
  // Split into graphemes, so that the cursor never stops inside one.
  let before: string[] = [];
  let after: string[] = [];
  /** How far back in the history the editor is. 0 is the current text, which `draft` keeps meanwhile. */
  let back = 0;
  let draft = "";

  const textOf = (): string => [...before, ...after].join("");
  const set = (text: string): void => {
    before = split(text);
    after = [];
  };
  const insert = (text: string): void => void before.push(...split(text));

  function recall(step: 1 | -1): void {
    const to = back + step;
    if (to < 0 || to > history.length) return;
    if (back === 0) draft = textOf();
    back = to;
    set(back === 0 ? draft : history[history.length - back]!);
  }

  /** Moves to the same column of the line above or below. Returns false if there is none. */
  function moveLine(step: 1 | -1): boolean {
    const lines = textOf().split("\n");
    const here = before.join("").split("\n");
    const line = here.length - 1 + step;
    const column = split(here.at(-1)!).length;
    if (line < 0 || line >= lines.length) return false;
    const skipped = lines.slice(0, line).reduce((sum, one) => sum + split(one).length + 1, 0);
    moveTo(skipped + Math.min(column, split(lines[line]!).length));
    return true;
  }

  function moveTo(place: number): void {
    const all = [...before, ...after];
    before = all.slice(0, place);
    after = all.slice(place);
  }

  /** The length of the word before the cursor, with the spaces after it. */
  const wordBefore = (): number => count(/\S*\s*$/u.exec(before.join(""))![0]);
  const wordAfter = (): number => count(/^\s*\S*/u.exec(after.join(""))![0]);
  const lineBefore = (): number => count(before.join("").split("\n").at(-1)!);
  const lineAfter = (): number => count(after.join("").split("\n")[0]!);

  function submit(): void {
    // A backslash at the end continues the text on a new line, for terminals without a key for that.
    if (before.at(-1) === "\\" && after.length === 0) {
      before.pop();
      return insert("\n");
    }
    const text = textOf();
    set("");
    back = 0;
    onSubmit(text);
  }

  const actions: Partial<Record<Key["name"], () => void>> = {
    enter: submit,
    newline: () => insert("\n"),
    backspace: () => void before.pop(),
    delete: () => void after.shift(),
    left: () => moveTo(Math.max(before.length - 1, 0)),
    right: () => moveTo(before.length + 1),
    "word-left": () => moveTo(before.length - wordBefore()),
    "word-right": () => moveTo(before.length + wordAfter()),
    home: () => moveTo(before.length - lineBefore()),
    end: () => moveTo(before.length + lineAfter()),
    up: () => moveLine(-1) || recall(1),
    down: () => moveLine(1) || recall(-1),
    "delete-word": () => void before.splice(before.length - wordBefore()),
    "delete-before": () => void before.splice(before.length - lineBefore()),
    "delete-after": () => void after.splice(0, lineAfter()),
  };

  return {
    get text() {
      return textOf();
    },
    set(text) {
      set(text);
      back = 0;
    },
    handle(key) {
      if (key.name === "text") {
        insert(sanitize(key.text));
        return true;
      }
      // Ctrl-D deletes forward. Only on empty input does it leave, which the caller handles.
      if (key.name === "end-of-input" && before.length + after.length > 0) {
        after.shift();
        return true;
      }
      const act = actions[key.name];
      act?.();
      return act !== undefined;
    },
    show(prompt, columns) {
      const indent = " ".repeat(textWidth(prompt));
      const rowsUpTo = (text: string): string[] =>
        text.split("\n").flatMap((line, at) => wrapHard(`${at === 0 ? prompt : indent}${line}`, indent, columns));
      const rows = rowsUpTo(textOf());
      const rowsBefore = rowsUpTo(before.join(""));
      return { rows, cursor: { row: rowsBefore.length - 1, column: textWidth(rowsBefore.at(-1)!) } };
    },
  };
}

/** Wraps exactly at the width, so that the rows before the cursor do not depend on the text after it. */
function wrapHard(line: string, indent: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  // The prompt may contain colour sequences, which must not be split.
  // oxlint-disable-next-line no-control-regex
  for (const [piece] of line.matchAll(/\u001b\[[\d;]*m|./gsu)) {
    if (textWidth(row) + textWidth(piece) > columns - 1) {
      rows.push(row);
      row = indent;
    }
    row += piece;
  }
  return [...rows, row];
}

/** Created on first use: it takes longer than everything else that `drover run` loads, which rarely needs it. */
let segmenter: Intl.Segmenter | null = null;

function split(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function count(text: string): number {
  return split(text).length;
}

/** Removes control characters from pasted text, and replaces tabs, whose width varies. */
function sanitize(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll("\t", "  ").replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "");
}
