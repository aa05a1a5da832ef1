/**
 * Compares what a block printed with the `output` block of the page. `...` within a line stands for any text, and a line
 * of only `...` for any number of lines. Returns a message, or null if they match.
 */
export function compareOutput(expected: string, actual: string): string | null {
  if (toPattern(expected).test(trimLines(actual))) return null;
  return `The page shows\n\n${expected}\n\nbut the commands printed\n\n${actual}`;
}

function toPattern(expected: string): RegExp {
  const lines = trimLines(expected).slice(0, -1).split("\n");
  const parts = lines.map((line) =>
    line.trim() === "..." ? "(?:.*\n)*" : `${line.split("...").map(escape).join(".*")} *\n`,
  );
  return new RegExp(`^${parts.join("")}$`);
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

const trimLines = (text: string): string => `${text.replace(/\s+$/, "")}\n`.replaceAll(/[ \t]+\n/g, "\n");
