import * as z from "zod";
import { closestLines } from "./closest-lines.ts";
import { readText, withFile } from "./file-content.ts";
import { fileTool, refuseProtected } from "./file-tool.ts";
import { replaceFile } from "./replace-file.ts";
import { ToolFailure } from "./tool-failure.ts";

const patchSchema = z.strictObject({
  find: z.string().min(1),
  replace: z.string(),
  startLine: z.int().min(1).optional(),
});
type Patch = z.output<typeof patchSchema>;

export const patchTool = fileTool({
  name: "file.patch",
  description:
    "Apply find/replace patches to a file. Each `find` must occur exactly once, or `startLine` gives the line to start from. All patches are applied, or none.",
  effect: "edit",
  input: z.strictObject({
    path: z.string().min(1).describe("Path relative to workspace"),
    patches: z.array(patchSchema).min(1).max(1000),
  }),
  run: ({ path, patches }, { workspace }) =>
    withFile(workspace, path, async (file, size, { directory, name, parts }) => {
      refuseProtected(parts, path);
      const before = await file.stat({ bigint: true });
      const old = await readText(file, size, path);
      const text = patches.reduce((now, patch, index) => apply(now, patch, `patches[${index}]`), old);
      if (text !== old)
        // a file opened by `withFile` has a name
        await replaceFile(directory, name!, Buffer.from(text), {
          mode: Number(before.mode) & 0o777,
          unchangedSince: before,
        });
      return { patches: patches.length, changed: text !== old, size: Buffer.byteLength(text) };
    }),
});

function apply(text: string, given: Patch, where: string): string {
  const { find, replace, startLine } = matchLineEndings(text, given);
  const from = startLine === undefined ? 0 : startOfLine(text, startLine);
  if (from === null)
    throw new ToolFailure("no_match", `${where}: the file has fewer than ${startLine} lines. Nothing was changed.`);
  const at = text.indexOf(find, from);
  if (at === -1) throw noMatch(text, find, where, startLine);
  const again = text.indexOf(find, at + 1);
  if (startLine === undefined && again !== -1)
    throw new ToolFailure(
      "ambiguous_match",
      `${where}: the text to find occurs more than once, first in lines ${lineOf(text, at)} and ${lineOf(text, again)}. ` +
        "Add lines around it, or give startLine. Nothing was changed.",
    );
  return text.slice(0, at) + replace + text.slice(at + find.length);
}

/** Models write `\n`. Files with Windows line endings keep them. */
function matchLineEndings(text: string, patch: Patch): Patch {
  if (!patch.find.includes("\n") || patch.find.includes("\r") || text.includes(patch.find)) return patch;
  const windows = (part: string): string => part.replaceAll("\n", "\r\n");
  return text.includes(windows(patch.find))
    ? { ...patch, find: windows(patch.find), replace: windows(patch.replace.replaceAll("\r\n", "\n")) }
    : patch;
}

function noMatch(text: string, find: string, where: string, startLine: number | undefined): ToolFailure {
  const after = startLine === undefined ? "" : ` from line ${startLine} on`;
  const elsewhere = text.indexOf(find);
  const hint =
    elsewhere === -1 ? closestLines(text, find) : `It occurs before that, in line ${lineOf(text, elsewhere)}.`;
  return new ToolFailure("no_match", `${where}: the text to find does not occur${after}. ${hint} Nothing was changed.`);
}

function startOfLine(text: string, line: number): number | null {
  let at = 0;
  for (let now = 1; now < line; now += 1) {
    const end = text.indexOf("\n", at);
    if (end === -1) return null;
    at = end + 1;
  }
  return at;
}

function lineOf(text: string, at: number): number {
  let line = 1;
  for (let end = text.indexOf("\n"); end !== -1 && end < at; end = text.indexOf("\n", end + 1)) line += 1;
  return line;
}
