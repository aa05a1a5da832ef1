/** Reads the cells of all tables on a page that have this header. A `\\|` in a cell is part of its text. */
export function readTableRows(text: string, header: readonly string[]): string[][] {
  const rows: string[][] = [];
  let isInside = false;
  for (const line of text.split("\n")) {
    const cells = splitCells(line);
    if (cells === null) isInside = false;
    else if (cells.join("|") === header.join("|")) isInside = true;
    else if (isInside && !/^[-: ]+$/.test(cells[0] ?? "")) rows.push(cells);
  }
  return rows;
}

function splitCells(line: string): string[] | null {
  if (!line.startsWith("|")) return null;
  const cells = line.split(/(?<!\\)\|/).slice(1, -1);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}
