import * as z from "zod";
import { describeClosestLines } from "./closest-lines.ts";
import { readText, withFile } from "./file-content.ts";
import { defineFileTool, rejectProtected } from "./file-tool.ts";
import { replaceFile } from "./replace-file.ts";
import { ToolFailure } from "./tool-failure.ts";

const patchSchema = z.strictObject({
  find: z.string().min(1),
  replace: z.string(),
  startLine: z.int().min(1).optional(),
});
type Patch = z.output<typeof patchSchema>;

export const patchTool = defineFileTool({
  name: "file.patch",
  description:
    "Apply find/replace patches to a file. Each `find` must occur exactly once, or `startLine` gives the line to start from. All patches are applied, or none.",
  effect: "edit",
  input: z.strictObject({
    path: z.string().min(1).describe("Path relative to the workspace"),
    patches: z.array(patchSchema).min(1).max(1000),
  }),
  run: ({ path, patches }, { workspace }) =>
    withFile(workspace, path, async (file, size, { directory, name, parts }) => {
      rejectProtected(parts, path);
      const oldStats = await file.stat({ bigint: true });
      const oldText = await readText(file, size, path);
      const text = patches.reduce((current, patch, index) => applyPatch(current, patch, `patches[${index}]`), oldText);
      if (text !== oldText)
        // `withFile` passes only locations with a name.
        await replaceFile(directory, name!, Buffer.from(text), {
          mode: Number(oldStats.mode) & 0o777,
          unchangedSince: oldStats,
        });
      return { patches: patches.length, changed: text !== oldText, size: Buffer.byteLength(text) };
    }),
});

function applyPatch(text: string, rawPatch: Patch, label: string): string {
  const { find, replace, startLine } = matchLineEndings(text, rawPatch);
  const searchStart = startLine === undefined ? 0 : findLineStart(text, startLine);
  if (searchStart === null)
    throw new ToolFailure("no_match", `${label}: the file has fewer than ${startLine} lines. Nothing was changed.`);
  const position = text.indexOf(find, searchStart);
  if (position === -1) throw noMatch(text, find, label, startLine);
  const nextPosition = text.indexOf(find, position + 1);
  if (startLine === undefined && nextPosition !== -1)
    throw new ToolFailure(
      "ambiguous_match",
      `${label}: the text to find occurs more than once, first in lines ${findLineNumber(text, position)} and ${findLineNumber(text, nextPosition)}. ` +
        "Add surrounding lines, or set startLine. Nothing was changed.",
    );
  return text.slice(0, position) + replace + text.slice(position + find.length);
}

/** Converts a patch to Windows line endings if the file has them, because models write `\n`. */
function matchLineEndings(text: string, patch: Patch): Patch {
  if (!patch.find.includes("\n") || patch.find.includes("\r") || text.includes(patch.find)) return patch;
  const toCrLf = (part: string): string => part.replaceAll("\n", "\r\n");
  return text.includes(toCrLf(patch.find))
    ? { ...patch, find: toCrLf(patch.find), replace: toCrLf(patch.replace.replaceAll("\r\n", "\n")) }
    : patch;
}

function noMatch(text: string, find: string, label: string, startLine: number | undefined): ToolFailure {
  const range = startLine === undefined ? "" : ` from line ${startLine} on`;
  const earlierPosition = text.indexOf(find);
  const hint =
    earlierPosition === -1
      ? describeClosestLines(text, find)
      : `It occurs earlier, in line ${findLineNumber(text, earlierPosition)}.`;
  return new ToolFailure("no_match", `${label}: the text to find does not occur${range}. ${hint} Nothing was changed.`);
}

function findLineStart(text: string, line: number): number | null {
  let position = 0;
  for (let current = 1; current < line; current += 1) {
    const end = text.indexOf("\n", position);
    if (end === -1) return null;
    position = end + 1;
  }
  return position;
}

function findLineNumber(text: string, position: number): number {
  let line = 1;
  for (let end = text.indexOf("\n"); end !== -1 && end < position; end = text.indexOf("\n", end + 1)) line += 1;
  return line;
}
