import { join } from "node:path";
import { drover, createDirectory } from "./drover.ts";

/** Creates a project with its own state directory. */
export function createProject(uid?: number) {
  const cwd = createDirectory(uid);
  const state = join(cwd, "state");
  const run = (...args: string[]) =>
    drover(args, { cwd, env: { DROVER_STATE_DIR: state }, ...(uid === undefined ? {} : { uid }) });
  return { cwd, state, run };
}
