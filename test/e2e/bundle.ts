import { renameSync } from "node:fs";
import { build } from "esbuild";
import { join } from "node:path";
import { root } from "./drover.ts";

/** A fixture in TypeScript as a script that plain node runs, in a folder of the project so that it finds the packages and the launcher. */
export async function bundle(fixture: string): Promise<string> {
  const outfile = join(root, "dist-test", `${fixture.replaceAll("/", "-").replace(/\.ts$/, "")}.cjs`);
  // Several test files bundle the same fixture, and another one may be starting it: nobody sees half of it.
  const draft = `${outfile}.${process.pid}`;
  await build({
    absWorkingDir: root,
    entryPoints: [join("test/fixtures", fixture)],
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
