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

export function createLauncher({ nativeDirectory, rungs = rungKinds }: LauncherOptions = {}): Launcher {
  let left: Rung[] | undefined;
  return {
    best() {
      left ??= findRungs(nativeDirectory === undefined ? findNativeDirectory() : nativeDirectory, rungs);
      // perl itself would start without its script, and say so in the command's place
      left = left.filter((rung) => rung.kind !== "perl" || existsSync(rung.words[1]!));
      return left[0] ?? { kind: "plain" };
    },
    drop(rung) {
      left = left?.filter((other) => other !== rung);
    },
  };
}

function findRungs(native: string | null, wanted: readonly RungKind[]): Rung[] {
  const rungs: Rung[] = [];
  if (process.platform !== "linux" || native === null) return rungs;
  const binary = join(native, "bin", `drover-init-linux-${process.arch}`);
  // also false for a file on a noexec mount
  if (wanted.includes("static") && isExecutable(binary)) rungs.push({ kind: "static", words: [binary] });
  const script = join(native, "init.pl");
  if (wanted.includes("perl")) {
    const perl = findExecutable("perl", process.env["PATH"], "/");
    if ("found" in perl) rungs.push({ kind: "perl", words: [perl.found, script] });
  }
  return rungs;
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
