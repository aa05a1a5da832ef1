import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { findExecutable } from "./find-executable.ts";
import { findNativeDirectory } from "./native-directory.ts";

/** The ways to start a command so that it can be killed with all its descendants, best first. */
export const launchMethodKinds = ["static", "perl", "plain"] as const;
export type LaunchMethodKind = (typeof launchMethodKinds)[number];

export type LaunchMethod =
  /** One of Drover's launchers. `argv` starts it. */
  | { kind: "static" | "perl"; argv: readonly string[] }
  /** Node's spawn with a process group, for hosts without a working launcher. */
  | { kind: "plain" };

export interface LaunchMethodOptions {
  /** The directory of bin/drover-init-* and init.pl. Found relative to this file by default. */
  nativeDirectory?: string | null;
  /** The launch methods that may be used. `plain` is always the last resort. */
  launchMethods?: readonly LaunchMethodKind[];
}

export interface LaunchMethodSelector {
  best(): LaunchMethod;
  /** Marks a launch method as not working here, so that it is not tried again. */
  drop(launchMethod: LaunchMethod): void;
}

/** Searches for a launch method only after the better ones have failed, so perl is not searched for unnecessarily. */
export function createLaunchMethodSelector({
  nativeDirectory,
  launchMethods = launchMethodKinds,
}: LaunchMethodOptions = {}): LaunchMethodSelector {
  const droppedKinds = new Set<LaunchMethodKind>();
  const cache = new Map<LaunchMethodKind, LaunchMethod | null>();
  let native: string | null | undefined = nativeDirectory;
  const find = (kind: LaunchMethodKind): LaunchMethod | null => {
    const cached = cache.get(kind);
    if (cached !== undefined) return cached;
    native ??= nativeDirectory === undefined ? findNativeDirectory() : null;
    const launchMethod = findLaunchMethod(kind, native);
    cache.set(kind, launchMethod);
    return launchMethod;
  };
  return {
    best() {
      for (const kind of launchMethodKinds) {
        if (!launchMethods.includes(kind) || droppedKinds.has(kind)) continue;
        const launchMethod = find(kind);
        // Without the script, perl would start and print an error in place of the command.
        if (launchMethod && (launchMethod.kind !== "perl" || existsSync(launchMethod.argv[1]!))) return launchMethod;
      }
      return { kind: "plain" };
    },
    drop({ kind }) {
      droppedKinds.add(kind);
    },
  };
}

function findLaunchMethod(kind: LaunchMethodKind, native: string | null): LaunchMethod | null {
  if (kind === "plain" || process.platform !== "linux" || native === null) return null;
  if (kind === "static") {
    const binary = join(native, "bin", `drover-init-linux-${process.arch}`);
    // A file on a noexec mount is not executable either.
    return isExecutable(binary) ? { kind, argv: [binary] } : null;
  }
  const perl = findExecutable("perl", process.env["PATH"], "/");
  return "found" in perl ? { kind, argv: [perl.found, join(native, "init.pl")] } : null;
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
