import { renameSync } from "node:fs";
import { build } from "esbuild";
import { join } from "node:path";
import { root } from "./drover.ts";

/**
 * Bundles a TypeScript fixture into a script that plain node can run, inside the project so that it finds the packages
 * and the launcher.
 */
export function bundle(fixture: string): Promise<string> {
  return bundleFile(join("test/fixtures", fixture), `${fixture.replaceAll("/", "-").replace(/\.ts$/, "")}.cjs`);
}

/** Bundles the worker threads of a coordinator, which a bundled fixture finds beside itself under these names. */
export function bundleThreads(): Promise<unknown> {
  return Promise.all([
    bundleFile("src/define/json-schema/engine.ts", "define-json-schema-engine.cjs"),
    bundleFile("src/serve/bodies/body-thread.ts", "serve-bodies-body-thread.cjs"),
  ]);
}

async function bundleFile(source: string, name: string): Promise<string> {
  const outfile = join(root, "dist-test", name);
  // Several test files bundle the same fixture, so an incomplete bundle must never be visible.
  const draft = `${outfile}.${process.pid}`;
  await build({
    absWorkingDir: root,
    entryPoints: [source],
    outfile: draft,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20.19",
    external: ["@photostructure/sqlite", "esbuild"],
    define: { DROVER_VERSION: '"0.0.0-fixture"' },
    logLevel: "error",
    logOverride: { "empty-import-meta": "silent" },
  });
  renameSync(draft, outfile);
  return outfile;
}
