import type { EngineName, Tools } from "../../torture/finding.ts";
import { freshDatabase } from "../postgres/fresh-database.ts";
import { bundle, bundleThreads } from "./bundle.ts";
import { root } from "./drover.ts";

/** Creates the tools that a torture row needs inside a test. */
export async function createTortureTools(engine: EngineName): Promise<Tools> {
  const [host, execMany] = await Promise.all([bundle("torture/host.ts"), bundle("e2e/exec-many.ts"), bundleThreads()]);
  return { root, host, execMany, engine, openDatabase: freshDatabase, progress: () => undefined };
}
