/** Combining characters, joiners and variation selectors take no column. */
const zeroWidthCharacter = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
/** East Asian wide and fullwidth ranges, and emoji that terminals draw in two columns. */
const wideCharacter =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})$/u;
// oxlint-disable-next-line no-control-regex
const colourSequence = /\u001b\[[\d;]*m/g;

/** Counts the columns that text takes on a terminal. Colour sequences take none. */
export function measureWidth(text: string): number {
  let columns = 0;
  for (const character of text.replaceAll(colourSequence, "")) columns += measureCharacter(character);
  return columns;
}

function measureCharacter(character: string): number {
  // Fast path for most characters.
  if (character >= " " && character < "\u0300") return 1;
  if (zeroWidthCharacter.test(character)) return 0;
  return wideCharacter.test(character) ? 2 : 1;
}

/** Truncates text to the width, with an ellipsis at the end. Text that fits stays unchanged. */
export function truncateToWidth(text: string, columns: number): string {
  if (measureWidth(text) <= columns) return text;
  let kept = "";
  let usedColumns = 0;
  for (const [piece] of text.matchAll(pieces)) {
    const width = measureWidth(piece);
    if (usedColumns + width > columns - 1) break;
    kept += piece;
    usedColumns += width;
  }
  return `${kept}…${text.includes("\u001b") ? "\u001b[0m" : ""}`;
}

/** The leading spaces of a line, after any colour sequences. */
// oxlint-disable-next-line no-control-regex
const leadingSpaces = /^(?:\u001b\[[\d;]*m)*( *)/;

/** Single characters and whole colour sequences. */
// oxlint-disable-next-line no-control-regex
const pieces = /\u001b\[[\d;]*m|./gsu;

/** Wraps a line into rows, between words if possible. Later rows get the indent of the line. */
export function wrapLine(line: string, columns: number): string[] {
  if (measureWidth(line) <= columns) return [line];
  const indent = (leadingSpaces.exec(line)?.[1] ?? "").slice(0, Math.floor(columns / 2));
  const rows: string[] = [];
  let row = "";
  let usedColumns = 0;
  /** Where the row can be wrapped: after its last space. */
  let breakAt = -1;
  for (const [piece] of line.matchAll(pieces)) {
    const width = measureWidth(piece);
    if (usedColumns + width > columns && usedColumns > indent.length) {
      if (piece === " ") {
        rows.push(row);
        row = indent;
        usedColumns = indent.length;
        breakAt = -1;
        continue;
      }
      const index = breakAt > indent.length ? breakAt : row.length;
      rows.push(row.slice(0, index).trimEnd());
      row = indent + row.slice(index);
      usedColumns = measureWidth(row);
      breakAt = -1;
    }
    row += piece;
    usedColumns += width;
    if (piece === " ") breakAt = row.length;
  }
  rows.push(row);
  return rows;
}
