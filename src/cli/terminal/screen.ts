import { cutToWidth, textWidth, wrapLine } from "./text-width.ts";

/** Text that stays, above a few rows that are drawn again whenever they change. */
export interface Screen {
  /** May begin and end in the middle of a line. */
  print(text: string): void;
  /** Something else writes next: it begins on a line of its own. */
  endLine(): void;
  /** The rows at the bottom, and where the cursor stands in them. */
  setLive(live: Live): void;
  /** For those who write to the terminal themselves: the rows at the bottom are out of their way. */
  aside(writeThere: () => void): void;
  /** The terminal has another size now. */
  resized(): void;
  /** Empties the terminal, and begins at its top. */
  clear(): void;
  /** Takes the rows at the bottom away. */
  close(): void;
}

export interface Live {
  rows: readonly string[];
  /** null: the cursor is hidden. */
  cursor: { row: number; column: number } | null;
}

export interface ScreenSize {
  columns: number;
  rows: number;
}

/** `size` is asked at each drawing. Every row fits the width, so what is drawn is known exactly and can be erased. */
export function createScreen(write: (text: string) => void, size: () => ScreenSize): Screen {
  /** The last line of the text, as long as it has no end: one row, drawn with the rows at the bottom. */
  let open = "";
  let live: Live = { rows: [], cursor: null };
  let drawn: { widths: number[]; cursorRow: number; hidden: boolean } = { widths: [], cursorRow: 0, hidden: false };

  /** Goes back to where the rows at the bottom begin. */
  function erase(): string {
    const { columns } = size();
    // a terminal that became narrower has broken the rows: each takes as many as its text needs now
    const above = drawn.widths
      .slice(0, drawn.cursorRow)
      .reduce((rows, width) => rows + Math.max(1, Math.ceil(width / columns)), 0);
    const text = drawn.widths.length === 0 ? "" : `${above > 0 ? `\u001b[${above}A` : ""}\r\u001b[J`;
    drawn = { ...drawn, widths: [], cursorRow: 0 };
    return text;
  }

  function draw(): string {
    const { columns, rows: height } = size();
    const most = Math.max(height - 1, 2);
    const all = [...(open === "" ? [] : [open]), ...live.rows].map((row) => cutToWidth(row, columns - 1));
    const shift = (open === "" ? 0 : 1) - Math.max(0, all.length - most);
    const rows = all.slice(-most);
    if (rows.length === 0) return showCursor(true);
    const at = live.cursor ? Math.min(Math.max(live.cursor.row + shift, 0), rows.length - 1) : rows.length - 1;
    const up = rows.length - 1 - at;
    const column = live.cursor ? Math.min(live.cursor.column, columns - 1) : 0;
    drawn = { ...drawn, widths: rows.map(textWidth), cursorRow: at };
    const place = `${up > 0 ? `\u001b[${up}A` : ""}\r${column > 0 ? `\u001b[${column}C` : ""}`;
    return `${rows.join("\n")}${live.cursor ? place : ""}${showCursor(live.cursor !== null)}`;
  }

  function showCursor(shown: boolean): string {
    if (drawn.hidden === !shown) return "";
    drawn = { ...drawn, hidden: !shown };
    return shown ? "\u001b[?25h" : "\u001b[?25l";
  }

  function print(text: string): void {
    const { columns } = size();
    const lines = (open + text).split("\n");
    const last = wrapLine(lines.pop()!, columns - 1);
    open = last.pop()!;
    const whole = [...lines.flatMap((line) => wrapLine(line, columns - 1)), ...last];
    write(`${erase()}${whole.map((row) => `${row}\n`).join("")}${draw()}`);
  }

  return {
    print,
    endLine: () => {
      if (open !== "") print("\n");
    },
    setLive(next) {
      live = next;
      write(`${erase()}${draw()}`);
    },
    aside(writeThere) {
      if (open !== "") print("\n");
      write(erase());
      writeThere();
      write(draw());
    },
    resized: () => write(`${erase()}${draw()}`),
    clear() {
      erase();
      write(`\u001b[2J\u001b[H${draw()}`);
    },
    close() {
      live = { rows: [], cursor: null };
      if (open !== "") print("\n");
      write(`${erase()}${showCursor(true)}`);
    },
  };
}
