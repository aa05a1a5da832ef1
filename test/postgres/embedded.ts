import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { canRun, getEmbeddedDirectory, embeddedPackage, hasPrograms, oldest } from "./programs.mjs";
import type { findOrdinaryUser } from "./user.mjs";

/** The directory with the programs that npm installed below `home`. They are copied below `spare` if necessary. */
export function prepareEmbeddedPrograms(
  home: string,
  user: ReturnType<typeof findOrdinaryUser>,
  spare: string,
): string {
  const native = getEmbeddedDirectory(home);
  const programs = join(native, "bin");
  if (!hasPrograms(programs))
    throw new Error(
      `There is no PostgreSQL ${oldest} or newer on this machine, and no ${embeddedPackage} in ${home}: \`npm test\` installs it`,
    );
  linkLibraries(native);
  if (canRun(programs, user)) return programs;
  // Root needs another user for the server, who may not be able to access root's directories.
  const copy = join(spare, "programs");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  if (!canRun(join(copy, "bin"), user)) throw new Error(`PostgreSQL from npm does not run here: ${programs}`);
  return join(copy, "bin");
}

/** An npm package cannot contain symbolic links. Its install script would create these, but scripts do not run here. */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  // The package wrote it, and its version is fixed.
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(native, "..", target);
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      if (!existsSync(link)) throw error; // Another process was first.
    }
  }
}
