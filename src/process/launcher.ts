import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { findExecutable } from "./lookup.ts";
import { findNativeDirectory } from "./native-directory.ts";

/** The ways to start a command that must be killed whole, best first. */
export const rungKinds = ["static", "perl", "plain"] as const;
export type RungKind = (typeof rungKinds)[number];

export type Rung =
  /** A launcher of ours, run by these words. */
  | { kind: "static" | "perl"; words: readonly string[] }
  /** Node's spawn alone, with a process group: all that a host without the launchers has. */
  | { kind: "plain" };

export interface LauncherOptions {
  /** Where bin/drover-init-* and init.pl are; found from this file unless given. */
  nativeDirectory?: string | null;
  /** Rungs that may be used. `plain` is always the last resort. */
  rungs?: readonly RungKind[];
}

export interface Launcher {
  best(): Rung;
  /** A rung that turned out not to run here is not tried again. */
  drop(rung: Rung): void;
}

/** Each rung is looked for when the ones above it have failed: with the static launcher there, nobody asks for perl. */
export function createLauncher({ nativeDirectory, rungs = rungKinds }: LauncherOptions = {}): Launcher {
  const dropped = new Set<RungKind>();
  const looked = new Map<RungKind, Rung | null>();
  let native: string | null | undefined = nativeDirectory;
  const find = (kind: RungKind): Rung | null => {
    const known = looked.get(kind);
    if (known !== undefined) return known;
    native ??= nativeDirectory === undefined ? findNativeDirectory() : null;
    const rung = findRung(kind, native);
    looked.set(kind, rung);
    return rung;
  };
  return {
    best() {
      for (const kind of rungKinds) {
        if (!rungs.includes(kind) || dropped.has(kind)) continue;
        const rung = find(kind);
        // perl itself would start without its script, and say so in the command's place
        if (rung && (rung.kind !== "perl" || existsSync(rung.words[1]!))) return rung;
      }
      return { kind: "plain" };
    },
    drop({ kind }) {
      dropped.add(kind);
    },
  };
}

function findRung(kind: RungKind, native: string | null): Rung | null {
  if (kind === "plain" || process.platform !== "linux" || native === null) return null;
  if (kind === "static") {
    const binary = join(native, "bin", `drover-init-linux-${process.arch}`);
    // also false for a file on a noexec mount
    return isExecutable(binary) ? { kind, words: [binary] } : null;
  }
  const perl = findExecutable("perl", process.env["PATH"], "/");
  return "found" in perl ? { kind, words: [perl.found, join(native, "init.pl")] } : null;
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
