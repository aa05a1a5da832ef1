import { join } from "node:path";
import { drover, folder } from "./drover.ts";

/** Creates a project with its own state directory. */
export function createProject(uid?: number) {
  const cwd = folder(uid);
  const state = join(cwd, "state");
  const run = (...args: string[]) =>
    drover(args, { cwd, env: { DROVER_STATE_DIR: state }, ...(uid === undefined ? {} : { uid }) });
  return { cwd, state, run };
}
