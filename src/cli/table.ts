import { isTerminal, write } from "./io.ts";
import { createIdShortener } from "./short-ids.ts";
import { createStyleFor, type Style } from "./terminal/style.ts";
import { truncateToWidth, measureWidth } from "./terminal/text-width.ts";

/**
 * One field of a table. A string is text, which may be truncated on a narrow terminal. An `id` is shortened on a terminal as
 * far as the ids of the table stay distinct. Other cells differ between a terminal (`shown`) and a pipe (`piped`), and are
 * never truncated.
 */
export type Cell = string | { id: string } | { shown: string; piped: string; tone?: Tone };
export type Tone = keyof Style;

/**
 * Writes an aligned table to a terminal, and tab-separated lines with complete values otherwise. If the terminal is too
 * narrow for all columns, leaves out the optional columns, in the order of that list.
 */
export function writeTable(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  optionalColumns: readonly string[] = [],
): void {
  const lines = isTerminal(1) ? formatTable(header, rows, undefined, optionalColumns) : rows.map(formatPipedRow);
  for (const line of lines) write(1, `${line}\n`);
}

function formatPipedRow(row: readonly Cell[]): string {
  const texts = row.map((cell) => (typeof cell === "string" ? cell : "id" in cell ? cell.id : cell.piped));
  return texts.map((text) => text.replaceAll(/[\t\n\r]/g, " ")).join("\t");
}

/** Formats the lines of a table for a terminal, the header first. A terminal that does not know its width reports 0. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  maxWidth = process.stdout.columns || 120,
  optionalColumns: readonly string[] = [],
): string[] {
  const style = createStyleFor(1, process.env);
  const ids = rows.flat().flatMap((cell) => (typeof cell !== "string" && "id" in cell ? [cell.id] : []));
  const shortenId = createIdShortener(ids);
  const texts = rows.map((row) => row.map((cell) => replaceControlCharacters(toShownText(cell, shortenId))));
  const widths = header.map((title, column) =>
    Math.max(measureWidth(title), ...texts.map((row) => measureWidth(row[column] ?? ""))),
  );
  const canShrink = header.map((_, column) => rows.every((row) => typeof (row[column] ?? "") === "string"));
  if (!shrinkColumns(widths, canShrink, maxWidth) && optionalColumns.length > 0) {
    const droppedColumn = header.indexOf(optionalColumns[0]!);
    const dropColumn = <T>(row: readonly T[]): T[] => row.filter((_, column) => column !== droppedColumn);
    return formatTable(dropColumn(header), rows.map(dropColumn), maxWidth, optionalColumns.slice(1));
  }
  const formatRow = (row: readonly string[], paint: (text: string, column: number) => string): string => {
    const lastColumn = row.findLastIndex((text) => text !== "");
    return row
      .slice(0, lastColumn + 1)
      .map((text, column) => {
        const shownText = truncateToWidth(text, widths[column]!);
        const padding = column === lastColumn ? "" : " ".repeat(widths[column]! - measureWidth(shownText));
        return `${paint(shownText, column)}${padding}`;
      })
      .join("  ");
  };
  return [
    style.bold(formatRow(header, (text) => text)),
    ...texts.map((row, index) =>
      formatRow(row, (text, column) => {
        const cell = rows[index]![column]!;
        const tone = typeof cell === "string" ? undefined : "id" in cell ? "cyan" : cell.tone;
        return tone === undefined ? text : style[tone](text);
      }),
    ),
  ];
}

function toShownText(cell: Cell, shortenId: (id: string) => string): string {
  if (typeof cell === "string") return cell;
  return "id" in cell ? shortenId(cell.id) : cell.shown;
}

/** A text column keeps at least this width. */
const minTextWidth = 8;

/**
 * Reduces the widest text columns until the row fits the terminal. Returns false if every text column has its minimum
 * width and the row still does not fit.
 */
function shrinkColumns(widths: number[], canShrink: readonly boolean[], maxWidth: number): boolean {
  const gaps = 2 * (widths.length - 1);
  for (let excess = widths.reduce((sum, width) => sum + width, gaps) - maxWidth; excess > 0; excess--) {
    const textWidths = widths.map((width, column) => (canShrink[column] ? width : 0));
    const widest = Math.max(...textWidths);
    if (widest <= minTextWidth) return false;
    widths[textWidths.indexOf(widest)] = widest - 1;
  }
  return true;
}

/** Replaces control characters, which could change what a terminal shows. */
export function replaceControlCharacters(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

export function formatDuration(ms: number | null): string {
  if (ms === null) return "-";
  if (Math.round(ms) < 1000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m${seconds % 60}s` : `${Math.floor(minutes / 60)}h${minutes % 60}m`;
}

/** Formats a time relative to now, like "5m ago" or "in 2h". */
export function formatAge(time: string, now: Date): string {
  const seconds = Math.round((now.getTime() - Date.parse(time)) / 1000);
  // Another machine's clock may be a little ahead.
  return seconds < -5 ? `in ${formatSpan(-seconds)}` : `${formatSpan(Math.max(0, seconds))} ago`;
}

function formatSpan(seconds: number): string {
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** Formats a number of bytes, like 1.5 MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log10(bytes) / 3), 4);
  return `${(bytes / 1000 ** power).toFixed(1)} ${["", "kB", "MB", "GB", "TB"][power]}`;
}
