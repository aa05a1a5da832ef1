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
  const frontMatter = parseFrontMatter(lines);
  if (!frontMatter.ok) return frontMatter;
  const { title, section } = findHeadings(lines, frontMatter.bodyStart);
  const strayLine = findFirstText(lines.slice(frontMatter.bodyStart, title ?? frontMatter.bodyStart));
  if (strayLine !== null)
    return createFailure(
      frontMatter.bodyStart + strayLine + 1,
      "there is text before the # title, which is not part of the system prompt",
      "Move it below the title, or into a comment.",
    );
  const promptStart = title === null ? frontMatter.bodyStart : title + 1;
  return {
    ok: true,
    fields: frontMatter.fields,
    findLine: frontMatter.findLine,
    inexact: frontMatter.inexact,
    title: title === null ? null : getHeadingText(lines[title]!),
    titleLine: (title ?? frontMatter.bodyStart) + 1,
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

function createFailure(line: number, problem: string, next?: string): Extract<MarkdownParts, { ok: false }> {
  return { ok: false, faults: [{ line, problem, ...(next ? { next } : {}) }] };
}

function parseFrontMatter(lines: readonly string[]): FrontMatter {
  const opening = lines[0] ?? "";
  if (!opening.startsWith("---")) return { ok: true, fields: {}, findLine: () => 1, inexact: [], bodyStart: 0 };
  if (opening.trimEnd() !== "---") {
    return createFailure(
      1,
      `front matter starts with a line of three dashes, not ${JSON.stringify(opening.slice(0, 40))}`,
      "Write the front matter in YAML between two lines of ---.",
    );
  }
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end < 0) return createFailure(1, "the front matter is never closed", "Close it with a line of ---.");
  const parsed = parseYaml(lines.slice(1, end).join("\n"), 2);
  if (!parsed.ok) {
    const faults = parsed.faults.map((fault) => ({
      ...fault,
      problem: fault.exceedsLimit
        ? `in the front matter, ${fault.problem}`
        : `the front matter is not valid YAML: ${fault.problem}`,
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
    const fenceMatch = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== null) {
      if (fenceMatch && fenceMatch[1]!.startsWith(fence) && fenceMatch[2]!.trim() === "") fence = null;
    } else if (fenceMatch) {
      fence = fenceMatch[1]!;
    } else if (/^ {0,3}##(?:[ \t]|$)/.test(line)) {
      return { title, section: index };
    } else if (title === null && /^ {0,3}#[ \t]+\S/.test(line)) {
      title = index;
    }
  }
  return { title, section: null };
}

/** Limits the input of the patterns below, which take quadratic time. */
const maxTitleLength = 1000;

/** The text of a heading, without the `#` characters before and after it. */
function getHeadingText(line: string): string {
  return line
    .trim()
    .slice(0, maxTitleLength)
    .replace(/^#+\s+/, "")
    .replace(/\s+#+$/, "")
    .trim();
}
