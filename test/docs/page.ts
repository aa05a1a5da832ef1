import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const root = dirname(dirname(import.meta.dirname));

/** A fenced block, or an HTML comment that readers do not see: `<!-- sh`, `<!-- file PATH` or `<!-- model`. */
export interface Block {
  language: string;
  text: string;
  line: number;
  isHidden: boolean;
  /** `[path]` of the info string: the file that the block shows. */
  file: string | null;
  /** `serve`: keeps running in the background while the rest of the page runs. */
  serves: boolean;
  /** `exit=N`: the exit code that the page announces. */
  exit: number;
  /** `norun="reason"`: why this block cannot run on a test machine. */
  norun: string | null;
  /** Words of the info string that have no meaning. */
  unknownWords: string[];
}

export interface Page {
  /** Relative to the project's root. */
  path: string;
  text: string;
  blocks: Block[];
}

/** Every page that people read, the README included. */
export function readPages(): Page[] {
  const inDocs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !/(?:^|\/)(?:node_modules|\.vitepress)\//.test(name))
    .map((name) => `docs/${name}`);
  const others = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].filter((name) =>
    existsSync(join(root, name)),
  );
  return [...others, ...inDocs.sort()].map(readPage);
}

export function readPage(path: string): Page {
  const text = readFileSync(join(root, path), "utf8");
  return { path, text, blocks: parseBlocks(text) };
}

const fenceStart = /^( *)(`{3,})(.*)$/;
const commentStart = /^<!-- (sh|file|model|postgres)\b(.*)$/;

export function parseBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const fence = fenceStart.exec(lines[index]!);
    const comment = fence ? null : commentStart.exec(lines[index]!);
    if (!fence && !comment) continue;
    const line = index + 1;
    if (comment) {
      const [, language = "", rest = ""] = comment;
      const body: string[] = [];
      if (!rest.endsWith("-->")) while (++index < lines.length && lines[index] !== "-->") body.push(lines[index]!);
      const file = language === "file" ? rest.trim() : null;
      blocks.push({ ...parseInfo(language), file, text: body.join("\n"), line, isHidden: true });
      continue;
    }
    const [, indent = "", ticks = "", info = ""] = fence!;
    const body: string[] = [];
    while (++index < lines.length && lines[index]!.trim() !== ticks) body.push(lines[index]!.replace(indent, ""));
    blocks.push({ ...parseInfo(info), text: body.join("\n"), line, isHidden: false });
  }
  return blocks;
}

function parseInfo(info: string): Omit<Block, "text" | "line" | "isHidden"> {
  let rest = info.trim();
  const take = (pattern: RegExp): string | null => {
    const match = pattern.exec(rest);
    if (match) rest = rest.replace(pattern, " ");
    return match ? (match[1] ?? match[0]) : null;
  };
  const norun = take(/ norun="([^"]*)"/);
  const file = take(/ \[([^\]]+)\]/);
  const exit = take(/ exit=(\d+)/);
  const serves = take(/ serve\b/) !== null;
  const [language = "", ...unknownWords] = rest.trim().split(/\s+/);
  return { language, file, serves, exit: Number(exit ?? 0), norun, unknownWords };
}
