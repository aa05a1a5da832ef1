import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "../scripts/lib/build.mjs";

/** Builds the command line once for the tests that run it. */
export default async function buildOnce(): Promise<void> {
  await ensureBuilt(dirname(dirname(fileURLToPath(import.meta.url))));
}
