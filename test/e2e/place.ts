import { join } from "node:path";
import { drover, folder } from "./drover.ts";

/** A place of its own, with its state directory inside. */
export function place(uid?: number) {
  const cwd = folder(uid);
  const state = join(cwd, "state");
  const run = (...args: string[]) =>
    drover(args, { cwd, env: { DROVER_STATE_DIR: state }, ...(uid === undefined ? {} : { uid }) });
  return { cwd, state, run };
}
