import * as z from "zod";
import { maxTextBytes } from "./file-content.ts";
import { defineFileTool, rejectProtected } from "./file-tool.ts";
import { replaceFile } from "./replace-file.ts";
import { getErrno, ToolFailure } from "./tool-failure.ts";

export const writeTool = defineFileTool({
  name: "file.write",
  description: "Write content to a file in the workspace",
  effect: "edit",
  input: z.strictObject({
    path: z.string().min(1).describe("Path relative to the workspace"),
    content: z.string().describe("Content to write"),
  }),
  async run({ path, content }, { workspace }) {
    const bytes = Buffer.from(content, "utf8");
    if (bytes.length > maxTextBytes)
      throw new ToolFailure(
        "too_large",
        `The content has ${bytes.length} bytes; the limit for writing is ${maxTextBytes}.`,
      );
    if (path.endsWith("/")) throw new ToolFailure("not_a_file", `${path} names a directory, not a file.`);
    return workspace.withPath(path, { followLast: true, makeDirectories: true }, async ({ directory, name, parts }) => {
      if (name === null) throw new ToolFailure("not_a_file", `${path} is a directory, not a file.`);
      rejectProtected(parts, path);
      const oldStats = await directory.stat(name).catch((error: unknown) => {
        if (getErrno(error) === "ENOENT") return null;
        throw error;
      });
      if (oldStats !== null && !oldStats.isFile())
        throw new ToolFailure("not_a_file", `${path} exists and is not a regular file.`);
      await replaceFile(directory, name, bytes, { mode: oldStats === null ? 0o666 : Number(oldStats.mode) & 0o777 });
      return { size: bytes.length, created: oldStats === null };
    });
  },
});
