import type { Isolation, Limits, StartCommand } from "../model/process.ts";
import { stripAdvice } from "./faults.ts";
import type { DiskLimits } from "./disk-usage-watch.ts";
import { findExecutable } from "./find-executable.ts";
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
  const [staticWorks, perlWorks, auto, ...levels] = await Promise.all([
    launcherWorks(createStart({ launchMethods: ["static"] })),
    launcherWorks(createStart({ launchMethods: ["perl"] })),
    tryLevel(start, "auto"),
    ...(["none", "group", "pid", "sandbox"] as const).map((level) => tryLevel(start, level)),
  ]);
  const [none, group, pid, sandbox] = levels.map(({ error }) => toFinding(error, isolationAdvice));
  const limits = await Promise.all(
    Object.entries(smallLimits).map(async ([name, value]) => [name, await tryLimit(start, name, value)]),
  );
  return {
    platform: `${process.platform}-${process.arch}`,
    launchers: {
      static: staticWorks ? { works: true } : { works: false, ...explainMissingLauncher() },
      perl: perlWorks ? { works: true } : { works: false, ...explainMissingPerl() },
      bwrap:
        findBwrap() === null
          ? {
              works: false,
              why: "bwrap is not on PATH",
              next: "Install the bubblewrap package to use the isolation level sandbox.",
            }
          : { works: true },
    },
    isolation: { none: none!, group: group!, pid: pid!, sandbox: sandbox! },
    auto: auto.isolation,
    limits: {
      // smallLimits has all keys except the two below.
      ...(Object.fromEntries(limits) as Record<keyof typeof smallLimits, Finding>),
      // Drover checks these itself and needs no support from the host.
      diskBytes: { works: true },
      files: { works: true },
    },
  };
}

const isolationAdvice =
  "For PID namespaces, run as root or allow them: sysctl kernel.unprivileged_userns_clone=1, or in a container --security-opt seccomp=unconfined. For sandbox, also install bubblewrap.";
const limitAdvice =
  "Run as root, or under systemd with Delegate=yes. The limits on memory and processes need a cgroup with the controllers memory and pids.";

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

async function tryLevel(start: StartCommand, isolation: Isolation | "auto", limits: Limits = {}): Promise<Trial> {
  const command = { executable: "/bin/sh", arguments: ["-c", ":"], limits, timeoutMs: 10_000 };
  const ended = await start(command, { isolation, output: "none" }, new AbortController().signal).result;
  return { isolation: ended.isolation, error: ended.error === null ? null : stripAdvice(ended.error) };
}

async function tryLimit(start: StartCommand, name: string, value: number): Promise<Finding> {
  return toFinding((await tryLevel(start, "auto", { [name]: value })).error, limitAdvice);
}

function toFinding(error: string | null, next: string): Finding {
  return error === null ? { works: true } : { works: false, why: error, next };
}

/** Only Drover's launchers report resource usage. */
async function launcherWorks(start: StartCommand): Promise<boolean> {
  const ended = await start(
    { executable: "/bin/sh", arguments: ["-c", ":"], timeoutMs: 10_000 },
    { isolation: "group", output: "none" },
    new AbortController().signal,
  ).result;
  return ended.resources !== null;
}

function explainMissingLauncher(): { why: string; next: string } {
  if (process.platform !== "linux") return { why: "it supports only Linux", next: "Use Linux to get the launcher." };
  if (findNativeDirectory() === null)
    return { why: "this installation has no native/ directory", next: "Reinstall Drover. Until then it uses perl." };
  return {
    why: `no launcher for ${process.arch} runs on this host`,
    next: "If the file system with Drover forbids executables (noexec), install Drover elsewhere. Until then it uses perl.",
  };
}

function explainMissingPerl(): { why: string; next: string } {
  if (!("found" in findExecutable("perl", process.env["PATH"], "/")))
    return {
      why: "perl is not on PATH",
      next: "Install perl. Drover needs it only if the static launcher does not work.",
    };
  return {
    why: "perl is on PATH, but Drover's perl launcher did not run",
    next: "Reinstall Drover. It needs perl only if the static launcher does not work.",
  };
}
