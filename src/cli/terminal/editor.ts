import type { Key } from "./keys.ts";
import { measureWidth } from "./text-width.ts";

/** An input field that may span several lines. */
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
  // The text before and after the cursor, split into graphemes, so that the cursor never stops inside one.
  let graphemesBefore: string[] = [];
  let graphemesAfter: string[] = [];
  /** How far back in the history the editor is. 0 is the current text, which `draft` keeps in the meantime. */
  let historyOffset = 0;
  let draft = "";

  const getText = (): string => [...graphemesBefore, ...graphemesAfter].join("");
  const set = (text: string): void => {
    graphemesBefore = splitGraphemes(text);
    graphemesAfter = [];
  };
  const insert = (text: string): void => void graphemesBefore.push(...splitGraphemes(text));

  function recall(step: 1 | -1): void {
    const target = historyOffset + step;
    if (target < 0 || target > history.length) return;
    if (historyOffset === 0) draft = getText();
    historyOffset = target;
    set(historyOffset === 0 ? draft : history[history.length - historyOffset]!);
  }

  /** Moves to the same column of the line above or below. Returns false if there is none. */
  function moveLine(step: 1 | -1): boolean {
    const lines = getText().split("\n");
    const linesBefore = graphemesBefore.join("").split("\n");
    const line = linesBefore.length - 1 + step;
    const column = splitGraphemes(linesBefore.at(-1)!).length;
    if (line < 0 || line >= lines.length) return false;
    const skipped = lines.slice(0, line).reduce((sum, previous) => sum + splitGraphemes(previous).length + 1, 0);
    moveTo(skipped + Math.min(column, splitGraphemes(lines[line]!).length));
    return true;
  }

  function moveTo(position: number): void {
    const graphemes = [...graphemesBefore, ...graphemesAfter];
    graphemesBefore = graphemes.slice(0, position);
    graphemesAfter = graphemes.slice(position);
  }

  /** Counts the graphemes of the word before the cursor, with the spaces after it. */
  const countWordBefore = (): number => countGraphemes(/\S*\s*$/u.exec(graphemesBefore.join(""))![0]);
  const countWordAfter = (): number => countGraphemes(/^\s*\S*/u.exec(graphemesAfter.join(""))![0]);
  const countLineBefore = (): number => countGraphemes(graphemesBefore.join("").split("\n").at(-1)!);
  const countLineAfter = (): number => countGraphemes(graphemesAfter.join("").split("\n")[0]!);

  function submit(): void {
    // A backslash at the end continues the text on a new line, for terminals without a key for that.
    if (graphemesBefore.at(-1) === "\\" && graphemesAfter.length === 0) {
      graphemesBefore.pop();
      return insert("\n");
    }
    const text = getText();
    set("");
    historyOffset = 0;
    onSubmit(text);
  }

  const actions: Partial<Record<Key["name"], () => void>> = {
    enter: submit,
    newline: () => insert("\n"),
    backspace: () => void graphemesBefore.pop(),
    delete: () => void graphemesAfter.shift(),
    left: () => moveTo(Math.max(graphemesBefore.length - 1, 0)),
    right: () => moveTo(graphemesBefore.length + 1),
    "word-left": () => moveTo(graphemesBefore.length - countWordBefore()),
    "word-right": () => moveTo(graphemesBefore.length + countWordAfter()),
    home: () => moveTo(graphemesBefore.length - countLineBefore()),
    end: () => moveTo(graphemesBefore.length + countLineAfter()),
    up: () => moveLine(-1) || recall(1),
    down: () => moveLine(1) || recall(-1),
    "delete-word": () => void graphemesBefore.splice(graphemesBefore.length - countWordBefore()),
    "delete-before": () => void graphemesBefore.splice(graphemesBefore.length - countLineBefore()),
    "delete-after": () => void graphemesAfter.splice(0, countLineAfter()),
  };

  return {
    get text() {
      return getText();
    },
    set(text) {
      set(text);
      historyOffset = 0;
    },
    handle(key) {
      if (key.name === "text") {
        insert(sanitize(key.text));
        return true;
      }
      // Ctrl-D deletes forward. Only on empty input does it leave, which the caller handles.
      if (key.name === "end-of-input" && graphemesBefore.length + graphemesAfter.length > 0) {
        graphemesAfter.shift();
        return true;
      }
      const action = actions[key.name];
      action?.();
      return action !== undefined;
    },
    show(prompt, columns) {
      const indent = " ".repeat(measureWidth(prompt));
      const toRows = (text: string): string[] =>
        text.split("\n").flatMap((line, index) => wrapHard(`${index === 0 ? prompt : indent}${line}`, indent, columns));
      const rows = toRows(getText());
      const rowsBefore = toRows(graphemesBefore.join(""));
      return { rows, cursor: { row: rowsBefore.length - 1, column: measureWidth(rowsBefore.at(-1)!) } };
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
    if (measureWidth(row) + measureWidth(piece) > columns - 1) {
      rows.push(row);
      row = indent;
    }
    row += piece;
  }
  return [...rows, row];
}

/** Created on first use, because that takes longer than loading the rest of `drover run`, and few runs need it. */
let segmenter: Intl.Segmenter | null = null;

function splitGraphemes(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function countGraphemes(text: string): number {
  return splitGraphemes(text).length;
}

/** Removes control characters from pasted text, and replaces tabs, whose width varies. */
function sanitize(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll("\t", "  ").replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "");
}
