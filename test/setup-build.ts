import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "../scripts/lib/build.mjs";

/** Tests that run the command line run the built one. */
export default async function buildOnce(): Promise<void> {
  await ensureBuilt(dirname(dirname(fileURLToPath(import.meta.url))));
}
