import { dirname } from "node:path";
import { ensureBuilt } from "../../scripts/lib/build.mjs";
import { ensureWebBuilt } from "../../scripts/lib/build-web.mjs";
import { ensureBrowser } from "./find-chromium.mjs";

/** Tests run what is shipped: the built dashboard, served by the built command line. */
export default async function prepare(): Promise<void> {
  const root = dirname(dirname(import.meta.dirname));
  await ensureBuilt(root);
  await ensureWebBuilt(root);
  ensureBrowser();
}
