import { type ListedParameters, parseParameters } from "./markdown-parameters.ts";
import { type InexactNumber, type FindLine, parseYaml, type TextFault } from "./structured-text.ts";

export type MarkdownParts =
  | {
      ok: true;
      /** The front matter; empty if there is none. */
      fields: unknown;
      findLine: FindLine;
      inexact: InexactNumber[];
      title: string | null;
      titleLine: number;
      systemPrompt: string;
      sections: string;
      parameters: ListedParameters;
    }
  | { ok: false; faults: (TextFault & { next?: string })[] };

/**
 * Splits a markdown agent into its YAML front matter (never executed), the `# Title`, the text up to the first `##`, and
 * the sections after it. Headings inside fenced code count as text.
 */
export function splitMarkdown(text: string): MarkdownParts {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const front = parseFrontMatter(lines);
  if (!front.ok) return front;
  const { title, section } = findHeadings(lines, front.bodyStart);
  const stray = findFirstText(lines.slice(front.bodyStart, title ?? front.bodyStart));
  if (stray !== null) return failure(front.bodyStart + stray + 1, "the text before the # title would be lost");
  const promptStart = title === null ? front.bodyStart : title + 1;
  return {
    ok: true,
    fields: front.fields,
    findLine: front.findLine,
    inexact: front.inexact,
    title: title === null ? null : headingText(lines[title]!),
    titleLine: (title ?? front.bodyStart) + 1,
    systemPrompt: lines
      .slice(promptStart, section ?? lines.length)
      .join("\n")
      .trim(),
    sections: section === null ? "" : lines.slice(section).join("\n").trim(),
    parameters: parseParameters(section === null ? [] : lines.slice(section), (section ?? 0) + 1),
  };
}

/** The zero-based number of the first line with text outside of comments. */
function findFirstText(lines: readonly string[]): number | null {
  let text = lines.join("\n");
  // Searching for the end of each unclosed comment would take quadratic time.
  for (let from = text.indexOf("<!--"); from >= 0; from = text.indexOf("<!--", from)) {
    const end = text.indexOf("-->", from + 4);
    if (end < 0) break;
    const newlines = text.slice(from, end).split("\n").length - 1;
    text = `${text.slice(0, from)}${"\n".repeat(newlines)}${text.slice(end + 3)}`;
  }
  const index = text.split("\n").findIndex((line) => line.trim() !== "");
  return index === -1 ? null : index;
}

type FrontMatter =
  | { ok: true; fields: unknown; findLine: FindLine; inexact: InexactNumber[]; bodyStart: number }
  | Extract<MarkdownParts, { ok: false }>;

function failure(line: number, problem: string, next?: string): Extract<MarkdownParts, { ok: false }> {
  return { ok: false, faults: [{ line, problem, ...(next ? { next } : {}) }] };
}

function parseFrontMatter(lines: readonly string[]): FrontMatter {
  const opening = lines[0] ?? "";
  if (!opening.startsWith("---")) return { ok: true, fields: {}, findLine: () => 1, inexact: [], bodyStart: 0 };
  if (opening.trimEnd() !== "---") {
    return failure(
      1,
      `front matter starts with a line of three dashes, not ${JSON.stringify(opening.slice(0, 40))}`,
      "Write the front matter in YAML between two lines of ---.",
    );
  }
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end < 0) return failure(1, "the front matter is never closed", "Close it with a line of ---.");
  const parsed = parseYaml(lines.slice(1, end).join("\n"), 2);
  if (!parsed.ok) {
    const faults = parsed.faults.map((fault) => ({
      ...fault,
      problem: fault.exceedsLimit
        ? `its front matter: ${fault.problem}`
        : `its front matter is not valid YAML: ${fault.problem}`,
    }));
    return { ok: false, faults };
  }
  return { ...parsed, fields: parsed.value ?? {}, bodyStart: end + 1 };
}

/** Zero-based line numbers of the first `#` before any `##`, and of the first `##`. */
function findHeadings(lines: readonly string[], from: number): { title: number | null; section: number | null } {
  let title: number | null = null;
  let fence: string | null = null;
  for (let index = from; index < lines.length; index++) {
    const line = lines[index]!;
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== null) {
      if (mark && mark[1]!.startsWith(fence) && mark[2]!.trim() === "") fence = null;
    } else if (mark) {
      fence = mark[1]!;
    } else if (/^ {0,3}##(?:[ \t]|$)/.test(line)) {
      return { title, section: index };
    } else if (title === null && /^ {0,3}#[ \t]+\S/.test(line)) {
      title = index;
    }
  }
  return { title, section: null };
}

/** Bounds the patterns below, which take quadratic time. */
const maxTitleLength = 1000;

/** The heading without its marks. Marks after the text are removed too. */
function headingText(line: string): string {
  return line
    .trim()
    .slice(0, maxTitleLength)
    .replace(/^#+\s+/, "")
    .replace(/\s+#+$/, "")
    .trim();
}
