import type { Isolation, Limits, StartCommand } from "../model/process.ts";
import { causeOf } from "./faults.ts";
import type { DiskLimits } from "./disk-usage-watch.ts";
import { findNativeDirectory } from "./native-directory.ts";
import { findBwrap } from "./sandbox.ts";
import { createStart } from "./start.ts";

/** The capabilities of this host, each tested by using it. */
export interface HostReport {
  platform: string;
  launchers: Record<"static" | "perl" | "bwrap", Finding>;
  isolation: Record<Isolation, Finding>;
  /** The level that `auto` selects. */
  auto: Isolation | null;
  limits: Record<keyof Limits, Finding>;
}

export type Finding = { works: true } | { works: false; why: string; next: string };

export async function probeHost(): Promise<HostReport> {
  const start = createStart();
  const [fixed, perl, auto, ...levels] = await Promise.all([
    hasLauncher(createStart({ launchMethods: ["static"] })),
    hasLauncher(createStart({ launchMethods: ["perl"] })),
    tryIt(start, "auto"),
    ...(["none", "group", "pid", "sandbox"] as const).map((level) => tryIt(start, level)),
  ]);
  const [none, group, pid, sandbox] = levels.map(({ error }) => finding(error, isolationNext));
  const limits = await Promise.all(
    Object.entries(smallLimits).map(async ([name, value]) => [name, await tryLimit(start, name, value)]),
  );
  return {
    platform: `${process.platform}-${process.arch}`,
    launchers: {
      static: fixed
        ? { works: true }
        : {
            works: false,
            why: launcherWhy(),
            next: "Reinstall Drover on a file system that allows executables; until then perl is used.",
          },
      perl: perl
        ? { works: true }
        : {
            works: false,
            why: "perl is not on PATH",
            next: "Install perl; it is needed only if the static launcher does not work.",
          },
      bwrap:
        findBwrap() === null
          ? { works: false, why: "bwrap is not on PATH", next: "Install the package bubblewrap for isolation sandbox." }
          : { works: true },
    },
    isolation: { none: none!, group: group!, pid: pid!, sandbox: sandbox! },
    auto: auto.isolation,
    limits: {
      // smallLimits has each of these keys
      ...(Object.fromEntries(limits) as Record<keyof typeof smallLimits, Finding>),
      // checked by Drover itself, which needs no support from the host
      diskBytes: { works: true },
      files: { works: true },
    },
  };
}

const isolationNext =
  "For PID namespaces run as root, or allow them: sysctl kernel.unprivileged_userns_clone=1, in a container --security-opt seccomp=unconfined; for sandbox install bubblewrap too.";
const limitNext =
  "Run as root, or under systemd with Delegate=yes; memory and processes need a cgroup with these controllers.";

/** Enough for a shell that does nothing. */
const smallLimits: Required<Omit<Limits, keyof DiskLimits>> = {
  cpuSeconds: 60,
  fileSizeBytes: 1 << 20,
  openFiles: 32,
  memoryBytes: 64 << 20,
  processes: 32,
};

interface Trial {
  isolation: Isolation | null;
  error: string | null;
}

async function tryIt(start: StartCommand, isolation: Isolation | "auto", limits: Limits = {}): Promise<Trial> {
  const command = { executable: "/bin/sh", arguments: ["-c", ":"], limits, timeoutMs: 10_000 };
  const ended = await start(command, { isolation, output: "none" }, new AbortController().signal).result;
  return { isolation: ended.isolation, error: ended.error === null ? null : causeOf(ended.error) };
}

async function tryLimit(start: StartCommand, name: string, value: number): Promise<Finding> {
  return finding((await tryIt(start, "auto", { [name]: value })).error, limitNext);
}

function finding(error: string | null, next: string): Finding {
  return error === null ? { works: true } : { works: false, why: error, next };
}

/** Only Drover's launchers report resource usage. */
async function hasLauncher(start: StartCommand): Promise<boolean> {
  const ended = await start(
    { executable: "/bin/sh", arguments: ["-c", ":"], timeoutMs: 10_000 },
    { isolation: "group", output: "none" },
    new AbortController().signal,
  ).result;
  return ended.resources !== null;
}

function launcherWhy(): string {
  if (process.platform !== "linux") return "it is for Linux only";
  return findNativeDirectory() === null
    ? "this installation lacks its native folder"
    : `there is none for ${process.arch} that runs here`;
}
