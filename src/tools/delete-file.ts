import * as z from "zod";
import { fileTool, refuseProtected } from "./file-tool.ts";
import { ToolFailure } from "./tool-failure.ts";

export const deleteTool = fileTool({
  name: "file.delete",
  description: "Delete a file from the workspace",
  effect: "edit",
  input: z.strictObject({ path: z.string().min(1).describe("Path relative to workspace") }),
  run: ({ path }, { workspace }) =>
    // a link itself is deleted, not what it leads to
    workspace.at(path, { followLast: false }, async ({ folder, name, parts }) => {
      if (name === null) throw new ToolFailure("not_a_file", `${path} is a folder; only files are deleted.`);
      refuseProtected(parts, path);
      if ((await folder.stat(name)).isDirectory())
        throw new ToolFailure("not_a_file", `${path} is a folder; only files are deleted.`);
      await folder.remove(name);
      return { deleted: true };
    }),
});
