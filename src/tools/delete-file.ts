import * as z from "zod";
import { fileTool, refuseProtected } from "./file-tool.ts";
import { ToolFailure } from "./tool-failure.ts";

export const deleteTool = fileTool({
  name: "file.delete",
  description: "Delete a file from the workspace",
  effect: "edit",
  input: z.strictObject({ path: z.string().min(1).describe("Path relative to workspace") }),
  run: ({ path }, { workspace }) =>
    // deletes a link itself, not its target
    workspace.at(path, { followLast: false }, async ({ directory, name, parts }) => {
      if (name === null) throw new ToolFailure("not_a_file", `${path} is a directory; only files can be deleted.`);
      refuseProtected(parts, path);
      if ((await directory.stat(name)).isDirectory())
        throw new ToolFailure("not_a_file", `${path} is a directory; only files can be deleted.`);
      await directory.remove(name);
      return { deleted: true };
    }),
});
