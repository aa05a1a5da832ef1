import { isTerminal, write } from "./io.ts";

/** Writes an aligned table to a terminal, and tab-separated lines otherwise. */
export function writeTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  if (!isTerminal(1)) {
    for (const row of rows) write(1, `${row.map((cell) => cell.replaceAll(/[\t\n\r]/g, " ")).join("\t")}\n`);
    return;
  }
  const allRows = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...allRows.map((row) => printable(row[column] ?? "").length)));
  // A terminal that does not know its width reports 0.
  const maxWidth = process.stdout.columns || 120;
  for (const row of allRows) {
    const line = row.map((cell, column) => printable(cell).padEnd(widths[column]!)).join("  ");
    write(1, `${line.trimEnd().slice(0, maxWidth)}\n`);
  }
}

/** Replaces control characters, which could change what a terminal shows. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

export function formatDuration(ms: number | null): string {
  if (ms === null) return "-";
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)}s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes}m${Math.round((ms % 60_000) / 1000)}s`
    : `${Math.floor(minutes / 60)}h${minutes % 60}m`;
}

export function formatAge(from: string, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(from)) / 1000));
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)}h ago` : `${Math.floor(seconds / 86_400)}d ago`;
}

/** Formats a number of bytes, like 1.5 MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log10(bytes) / 3), 4);
  return `${(bytes / 1000 ** power).toFixed(1)} ${["", "kB", "MB", "GB", "TB"][power]}`;
}
