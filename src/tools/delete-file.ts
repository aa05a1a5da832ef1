import * as z from "zod";
import { defineFileTool, rejectProtected } from "./file-tool.ts";
import { ToolFailure } from "./tool-failure.ts";

export const deleteTool = defineFileTool({
  name: "file.delete",
  description: "Delete a file from the workspace",
  effect: "edit",
  input: z.strictObject({ path: z.string().min(1).describe("Path relative to the workspace") }),
  run: ({ path }, { workspace }) =>
    // `followLast: false` deletes a link instead of its target.
    workspace.withPath(path, { followLast: false }, async ({ directory, name, parts }) => {
      if (name === null) throw new ToolFailure("not_a_file", `${path} is a directory; only files can be deleted.`);
      rejectProtected(parts, path);
      if ((await directory.stat(name)).isDirectory())
        throw new ToolFailure("not_a_file", `${path} is a directory; only files can be deleted.`);
      await directory.remove(name);
      return { deleted: true };
    }),
});
