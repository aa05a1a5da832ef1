import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import type { RunningProcess } from "../model/process.ts";
import { decodeText, maxTextBytes, withFile } from "./file-content.ts";
import { defineFileTool } from "./file-tool.ts";
import { findRipgrep } from "./ripgrep.ts";
import { ToolFailure } from "./tool-failure.ts";
import type { Workspace } from "./workspace.ts";

const maxLineCharacters = 2000;
const maxErrorCharacters = 500;

/**
 * Searches with ripgrep, but reads every returned line itself through the workspace. A directory that is swapped for a
 * link during the search can make ripgrep search outside, but those matches are not returned.
 */
export const searchTool = defineFileTool({
  name: "file.search",
  description:
    "Search for a pattern in files using ripgrep. Skips files above 10 MiB, and files that .gitignore excludes.",
  effect: "read",
  input: z.strictObject({
    pattern: z.string().min(1).max(10_000).describe("Regular expression to search for"),
    path: z.string().optional().describe("Directory to search (default: the workspace's root)"),
    glob: z.string().min(1).max(1000).optional().describe("Glob pattern that the files must match"),
    caseSensitive: z.boolean().optional().describe("Whether the search is case-sensitive (default: true)"),
    contextLines: z
      .int()
      .min(0)
      .max(50)
      .optional()
      .describe("Number of lines to return before and after each match (default: 0)"),
    maxResults: z.int().min(1).max(10_000).optional().describe("Maximum number of results (default: 100)"),
  }),
  async run({ path = ".", contextLines = 0, maxResults = 100, ...query }, { workspace, start, signal }) {
    const directory = await resolvePath(workspace, path);
    const running = await start({
      executable: findRipgrep(),
      arguments: toRipgrepArguments(query, directory),
      workingDirectory: workspace.root,
    });
    const results = await collectMatches(running, path, maxResults);
    signal.throwIfAborted();
    const matches = await readMatches(workspace, results.matches, contextLines);
    return { matches, ...(results.isTruncated ? { truncated: true } : {}) };
  },
});

interface Query {
  pattern: string;
  glob?: string | undefined;
  caseSensitive?: boolean | undefined;
}

function toRipgrepArguments({ pattern, glob, caseSensitive = true }: Query, directory: string): string[] {
  return [
    "--json",
    "--no-config",
    "--no-messages",
    "--no-follow",
    "--hidden",
    "--glob=!.git",
    `--max-filesize=${maxTextBytes}`,
    caseSensitive ? "--case-sensitive" : "--ignore-case",
    ...(glob === undefined ? [] : [`--glob=${glob}`]),
    `--regexp=${pattern}`,
    "--",
    directory,
  ];
}

/** Resolves links, because ripgrep follows none. */
function resolvePath(workspace: Workspace, path: string): Promise<string> {
  return workspace.withPath(path, { followLast: true }, async ({ directory, name, parts }) => {
    if (name !== null && !(await directory.stat(name)).isDirectory())
      throw new ToolFailure("not_a_folder", `${path} is not a directory. To search one file, set glob to its name.`);
    return join("./", Buffer.concat(parts.flatMap((part) => [part, Buffer.from("/")])).toString("utf8"));
  });
}

interface Match {
  path: string;
  line: number;
  text: string;
}

/** Stops ripgrep once it has found more than `maxResults` matches. */
async function collectMatches(
  running: RunningProcess,
  path: string,
  maxResults: number,
): Promise<{ matches: Match[]; isTruncated: boolean }> {
  const matches: Match[] = [];
  let isTruncated = false;
  let stderr = "";
  running.stderr?.on("data", (chunk: Buffer) => {
    if (stderr.length < maxErrorCharacters) stderr += chunk.toString("utf8");
  });
  if (running.stdout === null) {
    const { error } = await running.result;
    throw new ToolFailure("failed", `ripgrep could not be started: ${error?.message ?? "unknown cause"}`);
  }
  for await (const line of createInterface({ input: running.stdout, crlfDelay: Infinity })) {
    const match = parseMatch(line);
    if (match === null) continue;
    if (matches.length >= maxResults) {
      isTruncated = true;
      await running.kill("output_limit");
      break;
    }
    matches.push(match);
  }
  const { exitCode } = await running.result;
  // The exit code is 1 if nothing matched, and 2 if the pattern is invalid or a file could not be read.
  if (exitCode === 2 && matches.length === 0)
    throw new ToolFailure("invalid_input", describeFailure(stderr.trim(), path));
  return { matches, isTruncated };
}

function describeFailure(stderr: string, path: string): string {
  if (stderr !== "") return `ripgrep: ${stderr.slice(0, maxErrorCharacters)}`;
  return `ripgrep could not search ${path}: it may not be readable.`;
}

/** Does not match paths and lines that are not UTF-8, which ripgrep encodes as base64. No tool could show them. */
const matchSchema = z.object({
  type: z.literal("match"),
  data: z.object({
    path: z.object({ text: z.string() }),
    lines: z.object({ text: z.string() }),
    line_number: z.number(),
  }),
});

function parseMatch(line: string): Match | null {
  if (!line.startsWith('{"type":"match"')) return null;
  const parsed = matchSchema.safeParse(JSON.parse(line));
  if (!parsed.success) return null;
  const { path, lines, line_number } = parsed.data.data;
  return { path: path.text, line: line_number, text: getFirstLine(lines.text) };
}

function getFirstLine(text: string): string {
  const end = text.indexOf("\n");
  return stripCarriageReturn(end === -1 ? text : text.slice(0, end));
}

interface MatchInContext {
  path: string;
  line: number;
  text: string;
  before?: string[];
  after?: string[];
}

/** How many files are read concurrently. */
const concurrency = 8;

async function readMatches(
  workspace: Workspace,
  matches: readonly Match[],
  context: number,
): Promise<MatchInContext[]> {
  const results: MatchInContext[] = [];
  const files = [...groupByPath(matches)];
  for (let start = 0; start < files.length; start += concurrency) {
    const batch = files.slice(start, start + concurrency);
    const texts = await Promise.all(batch.map(([path]) => readFileLines(workspace, path)));
    for (const [index, [path, fileMatches]] of batch.entries())
      results.push(...verifyMatches(path, fileMatches, texts[index]!, context));
  }
  return results;
}

/** Returns the matches whose line is the same in the workspace's file, with their context. */
function verifyMatches(
  path: string,
  matches: readonly Match[],
  lines: readonly string[] | null,
  context: number,
): MatchInContext[] {
  return matches.flatMap(({ line, text }) => {
    const actual = lines?.[line - 1];
    // ripgrep read another file, or the file has changed since.
    if (lines === null || actual === undefined || actual !== text) return [];
    const surrounding = {
      before: lines.slice(Math.max(0, line - 1 - context), line - 1).map(truncateLine),
      after: lines.slice(line, line + context).map(truncateLine),
    };
    return [
      { path: path.replace(/^\.\//, ""), line, text: truncateLine(actual), ...(context === 0 ? {} : surrounding) },
    ];
  });
}

async function readFileLines(workspace: Workspace, path: string): Promise<string[] | null> {
  try {
    return await withFile(workspace, path, async (file, size) =>
      size > maxTextBytes
        ? null
        : decodeText(await file.readFile(), path)
            .split("\n")
            .map(stripCarriageReturn),
    );
  } catch (error) {
    // The file was removed or replaced, or is not text.
    if (error instanceof ToolFailure || (error instanceof Error && "code" in error)) return null;
    throw error;
  }
}

function groupByPath(matches: readonly Match[]): Map<string, Match[]> {
  const groups = new Map<string, Match[]>();
  for (const match of matches) {
    const group = groups.get(match.path);
    if (group) group.push(match);
    else groups.set(match.path, [match]);
  }
  return groups;
}

function stripCarriageReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function truncateLine(line: string): string {
  return line.slice(0, maxLineCharacters);
}
