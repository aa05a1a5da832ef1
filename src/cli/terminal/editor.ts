import type { Key } from "./keys.ts";
import { textWidth } from "./text-width.ts";

/** A text that somebody types, over several lines where they want. */
export interface Editor {
  readonly text: string;
  set(text: string): void;
  /** `false`: this key is not the editor's. `enter` is: it submits, and the text is what `onSubmit` gets. */
  handle(key: Key): boolean;
  /** The rows of the text behind a prompt, and where the cursor stands. */
  show(prompt: string, columns: number): { rows: string[]; cursor: { row: number; column: number } };
}

/** `history`: what was typed before, oldest first; the arrow keys go through it. */
export function createEditor(onSubmit: (text: string) => void, history: readonly string[] = []): Editor {
  // by character as people see them, so that no key stops inside one
  let before: string[] = [];
  let after: string[] = [];
  /** How far back in the history; 0 is what is being typed, kept in `draft` meanwhile. */
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

  /** To the line above or below, at the same place; false where there is none. */
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

  /** How many characters before the cursor belong to the word there, with the spaces behind it. */
  const wordBefore = (): number => count(/\S*\s*$/u.exec(before.join(""))![0]);
  const wordAfter = (): number => count(/^\s*\S*/u.exec(after.join(""))![0]);
  const lineBefore = (): number => count(before.join("").split("\n").at(-1)!);
  const lineAfter = (): number => count(after.join("").split("\n")[0]!);

  function submit(): void {
    // a backslash at the end of a line continues it: for terminals without a key for a new line
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
        insert(tidy(key.text));
        return true;
      }
      // on an empty line it means the end of the conversation
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
      const till = rowsUpTo(before.join(""));
      return { rows, cursor: { row: till.length - 1, column: textWidth(till.at(-1)!) } };
    },
  };
}

/** Broken exactly at the width, so that the rows before the cursor do not depend on what stands behind it. */
function wrapHard(line: string, indent: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  // the prompt may hold colours, which must not be cut
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

/** Made with the first text: it takes longer than all else that `drover run` loads, which seldom asks anything. */
let segmenter: Intl.Segmenter | null = null;

function split(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function count(text: string): number {
  return split(text).length;
}

/** What is pasted may hold anything; tabs would be drawn wider than they are counted. */
function tidy(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll("\t", "  ").replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "");
}
