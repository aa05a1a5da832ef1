import { linkSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Contained in every file outside the workspace and in the name of one. No tool may return it. */
export const canary = "CANARY-outside-the-workspace";

/** A workspace full of links that lead to a directory outside. */
export interface HostileWorkspace {
  base: string;
  root: string;
  outside: string;
  /** Restores the links and files that a tool may legitimately remove or replace. */
  restore(): void;
}

export function createHostileWorkspace(): HostileWorkspace {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "drover-escapes-")));
  const root = join(base, "ws");
  const outside = join(base, "ws-not");
  mkdirSync(join(root, "a/b"), { recursive: true });
  mkdirSync(join(outside, "folder"), { recursive: true });
  for (const file of ["secret", "folder/secret", "swap", canary])
    writeFileSync(join(outside, file), `${canary} ${file}\n`);
  const links = {
    link: outside,
    relative: "../ws-not",
    "a/link": "../../ws-not",
    file: join(outside, "secret"),
    "a/file": "../../ws-not/secret",
    chain: "a/link/folder",
    up: "..",
    root: "/",
    proc: "/proc/self/cwd",
    fds: "/proc/self/fd",
    self: ".",
    circle: "circle",
  };
  const restore = (): void => {
    for (const [path, to] of Object.entries(links))
      if (!isLink(join(root, path))) {
        rmSync(join(root, path), { recursive: true, force: true });
        symlinkSync(to, join(root, path));
      }
    writeFileSync(join(root, "a/secret"), "inside\n");
    rmSync(join(root, "hard"), { force: true });
    linkSync(join(outside, "secret"), join(root, "hard"));
  };
  restore();
  return { base, root, outside, restore };
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** The real path that a tool would reach if it trusted the given one, or null if nothing is there. */
export function findRealPath({ root }: HostileWorkspace, path: string): string | null {
  if (path.includes("\0")) return null;
  try {
    // Not `join`, which would resolve `..` textually even behind a link.
    return realpathSync.native(path.startsWith("/") ? path : `${root}/${path}`);
  } catch {
    return null; // Missing, or a link loop.
  }
}

export function isOutside({ root }: HostileWorkspace, real: string): boolean {
  return real !== root && !real.startsWith(`${root}/`);
}

/** Distinct hostile paths: every entry point combined with every way out and every target. Those that really lead outside come first. */
export function createHostilePaths(workspace: HostileWorkspace, count: number): string[] {
  const { outside, root } = workspace;
  const ways = ["", "./", "a/", "a/b/", "a/../", "self/", "self/self/a/", "link/", "relative/", "a/link/", "chain/"];
  ways.push("up/", "up/ws/", "root/", `root${root}/`, `root${root}/a/`, "a/b/../../self/", "link/../ws/");
  const ups = ["", "../", "../../", ".././../", "..//..///", "a/../../", "./.././", "../ws/../"];
  ups.push("../../../../../../../../", "a/b/../../../", "self/../", "link/../");
  const ends = ["secret", "folder/secret", "ws-not/secret", "ws-not/folder/secret", "../ws-not/secret", "file", "hard"];
  ends.push("ws-not", "link/secret", "ws/link/secret", "ws/file", `.${outside}/secret`);
  ends.push("ws-not/folder", "../ws-not/folder/secret", "ws-not/swap");
  const others = [
    join(outside, "secret"),
    `/${join(outside, "secret")}`,
    `${root}/../ws-not/secret`,
    `${root}/link/secret`,
    `root${outside}/secret`,
    `proc/../ws-not/secret`,
    `/proc/self/root${outside}/secret`,
    `/proc/self/cwd/../${outside}/secret`,
    `file://${outside}/secret`,
    "fds/0",
    "fds/1",
    "root/etc/passwd",
    "a\\..\\..\\ws-not\\secret",
    "..%2fws-not%2fsecret",
    "%2e%2e/ws-not/secret",
    "..\u2215ws-not\u2215secret",
    "\uff0e\uff0e/ws-not/secret",
    "secret\0.txt",
    "../ws-not/secret\0",
    "~/secret",
    "~root/secret",
    "$HOME/secret",
    "-e/secret",
    "--files",
    "hard",
    "file",
    "a/file",
    "circle",
    "",
    "/",
    "..",
    ".",
  ];
  const created = ways.flatMap((way) => ups.flatMap((up) => ends.map((end) => way + up + end)));
  const leads = (path: string): boolean => {
    const real = findRealPath(workspace, path);
    return real !== null && isOutside(workspace, real);
  };
  const leading = [...new Set(created)].filter((path) => !others.includes(path) && leads(path));
  const max = count - others.length;
  // A small count gets both kinds, too.
  return max <= 0 ? pickSpread([...others, ...leading], count) : [...others, ...pickSpread(leading, max)];
}

/** Picks `count` items spread over the whole list. */
function pickSpread<T>(all: readonly T[], count: number): T[] {
  const length = Math.min(count, all.length);
  return Array.from({ length }, (_, index) => all[Math.floor((index * all.length) / length)]!);
}
