import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { canRun, embeddedFolder, embeddedPackage, hasPrograms, oldest } from "./programs.mjs";
import type { ordinaryUser } from "./user.mjs";

/** The folder with the programs that npm installed below `home`. They are copied below `spare` if need be. */
export function embeddedPrograms(home: string, user: ReturnType<typeof ordinaryUser>, spare: string): string {
  const native = embeddedFolder(home);
  const programs = join(native, "bin");
  if (!hasPrograms(programs))
    throw new Error(
      `There is no PostgreSQL ${oldest} or newer on this machine, and no ${embeddedPackage} in ${home}: \`npm test\` installs it`,
    );
  linkLibraries(native);
  if (canRun(programs, user)) return programs;
  // the other user whom root needs may not look into root's folders
  const copy = join(spare, "programs");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  if (!canRun(join(copy, "bin"), user)) throw new Error(`PostgreSQL from npm does not run here: ${programs}`);
  return join(copy, "bin");
}

/** An npm package cannot carry symbolic links. Its install script would make these, but scripts do not run here. */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  // written by the package, whose version is fixed
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(native, "..", target);
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      if (!existsSync(link)) throw error; // somebody else was first
    }
  }
}
