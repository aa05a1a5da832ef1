import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { findExecutable } from "./lookup.ts";
import { findNativeDirectory } from "./native-directory.ts";

/** The ways to start a command that must be killed whole, best first. */
export const launchMethodKinds = ["static", "perl", "plain"] as const;
export type LaunchMethodKind = (typeof launchMethodKinds)[number];

export type LaunchMethod =
  /** A launcher of ours, run by these words. */
  | { kind: "static" | "perl"; words: readonly string[] }
  /** Node's spawn alone, with a process group: all that a host without the launchers has. */
  | { kind: "plain" };

export interface LauncherOptions {
  /** Where bin/drover-init-* and init.pl are; found from this file unless given. */
  nativeDirectory?: string | null;
  /** Rungs that may be used. `plain` is always the last resort. */
  launchMethods?: readonly LaunchMethodKind[];
}

export interface Launcher {
  best(): LaunchMethod;
  /** A launchMethod that turned out not to run here is not tried again. */
  drop(launchMethod: LaunchMethod): void;
}

/** Each launchMethod is looked for when the ones above it have failed: with the static launcher there, nobody asks for perl. */
export function createLauncher({ nativeDirectory, launchMethods = launchMethodKinds }: LauncherOptions = {}): Launcher {
  const dropped = new Set<LaunchMethodKind>();
  const looked = new Map<LaunchMethodKind, LaunchMethod | null>();
  let native: string | null | undefined = nativeDirectory;
  const find = (kind: LaunchMethodKind): LaunchMethod | null => {
    const known = looked.get(kind);
    if (known !== undefined) return known;
    native ??= nativeDirectory === undefined ? findNativeDirectory() : null;
    const launchMethod = findRung(kind, native);
    looked.set(kind, launchMethod);
    return launchMethod;
  };
  return {
    best() {
      for (const kind of launchMethodKinds) {
        if (!launchMethods.includes(kind) || dropped.has(kind)) continue;
        const launchMethod = find(kind);
        // perl itself would start without its script, and say so in the command's place
        if (launchMethod && (launchMethod.kind !== "perl" || existsSync(launchMethod.words[1]!))) return launchMethod;
      }
      return { kind: "plain" };
    },
    drop({ kind }) {
      dropped.add(kind);
    },
  };
}

function findRung(kind: LaunchMethodKind, native: string | null): LaunchMethod | null {
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
