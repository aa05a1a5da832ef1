import { truncateToWidth, measureWidth, wrapLine } from "./text-width.ts";

/** Permanent text above a live area of a few rows, which is redrawn whenever it changes. */
export interface Screen {
  /** The text may start and end in the middle of a line. */
  print(text: string): void;
  /** Ends an unfinished line, so that the next output starts on a new one. */
  endLine(): void;
  /** Replaces the live rows and the cursor position in them. */
  setLiveArea(area: LiveArea): void;
  /** Removes the live rows while `write` writes to the terminal directly. */
  writeAbove(write: () => void): void;
  /** Draws the live rows again, for example after the terminal was resized. */
  redraw(): void;
  /** Clears the terminal and redraws at the top. */
  clear(): void;
  /** Removes the live rows. */
  close(): void;
}

/** The rows below the permanent text. */
export interface LiveArea {
  rows: readonly string[];
  /** null hides the cursor. */
  cursor: { row: number; column: number } | null;
}

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** Asks for the size on every draw. Every row fits the width, so the screen always knows how many rows to erase. */
export function createScreen(write: (text: string) => void, getSize: () => ScreenSize): Screen {
  /** The last, unfinished line of the text. It is drawn as one row above the live rows. */
  let unfinishedLine = "";
  let liveArea: LiveArea = { rows: [], cursor: null };
  /** What the terminal shows now. */
  let drawing: { widths: number[]; cursorRow: number; hidden: boolean } = { widths: [], cursorRow: 0, hidden: false };

  /** Returns the sequences that move the cursor to the first live row and clear everything below. */
  function erase(): string {
    const { columns } = getSize();
    // A terminal that became narrower has wrapped the rows, so each may take several now.
    const rowsAbove = drawing.widths
      .slice(0, drawing.cursorRow)
      .reduce((rows, width) => rows + Math.max(1, Math.ceil(width / columns)), 0);
    const text = drawing.widths.length === 0 ? "" : `${rowsAbove > 0 ? `\u001b[${rowsAbove}A` : ""}\r\u001b[J`;
    drawing = { ...drawing, widths: [], cursorRow: 0 };
    return text;
  }

  function draw(): string {
    const { columns, rows: height } = getSize();
    const maxRows = Math.max(height - 1, 2);
    const allRows = [...(unfinishedLine === "" ? [] : [unfinishedLine]), ...liveArea.rows].map((row) =>
      truncateToWidth(row, columns - 1),
    );
    const shift = (unfinishedLine === "" ? 0 : 1) - Math.max(0, allRows.length - maxRows);
    const rows = allRows.slice(-maxRows);
    if (rows.length === 0) return showCursor(true);
    const cursorRow = liveArea.cursor
      ? Math.min(Math.max(liveArea.cursor.row + shift, 0), rows.length - 1)
      : rows.length - 1;
    const rowsUp = rows.length - 1 - cursorRow;
    const column = liveArea.cursor ? Math.min(liveArea.cursor.column, columns - 1) : 0;
    drawing = { ...drawing, widths: rows.map(measureWidth), cursorRow };
    const moveCursor = `${rowsUp > 0 ? `\u001b[${rowsUp}A` : ""}\r${column > 0 ? `\u001b[${column}C` : ""}`;
    return `${rows.join("\n")}${liveArea.cursor ? moveCursor : ""}${showCursor(liveArea.cursor !== null)}`;
  }

  function showCursor(isVisible: boolean): string {
    if (drawing.hidden === !isVisible) return "";
    drawing = { ...drawing, hidden: !isVisible };
    return isVisible ? "\u001b[?25h" : "\u001b[?25l";
  }

  function print(text: string): void {
    const { columns } = getSize();
    const lines = (unfinishedLine + text).split("\n");
    const lastRows = wrapLine(lines.pop()!, columns - 1);
    unfinishedLine = lastRows.pop()!;
    const finishedRows = [...lines.flatMap((line) => wrapLine(line, columns - 1)), ...lastRows];
    write(`${erase()}${finishedRows.map((row) => `${row}\n`).join("")}${draw()}`);
  }

  return {
    print,
    endLine: () => {
      if (unfinishedLine !== "") print("\n");
    },
    setLiveArea(area) {
      liveArea = area;
      write(`${erase()}${draw()}`);
    },
    writeAbove(writeText) {
      if (unfinishedLine !== "") print("\n");
      write(erase());
      writeText();
      write(draw());
    },
    redraw: () => write(`${erase()}${draw()}`),
    clear() {
      erase();
      write(`\u001b[2J\u001b[H${draw()}`);
    },
    close() {
      liveArea = { rows: [], cursor: null };
      if (unfinishedLine !== "") print("\n");
      write(`${erase()}${showCursor(true)}`);
    },
  };
}
