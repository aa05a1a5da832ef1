import type { Command, Isolation, Limits } from "../model/process.ts";
import type { ProtectedPaths } from "./protected-paths.ts";
import type { LaunchMethod } from "./create-launcher.ts";

/** A request to a launch method, with all paths resolved. */
export interface LaunchRequest {
  /** The file to execute. A bare name only if Node's own spawn is used. */
  path: string;
  command: Command;
  level: Isolation | "auto";
  onTerminal: boolean;
  merged: boolean;
  keepLeftovers: boolean;
  cgroupFiles: readonly string[];
  protectedPaths: ProtectedPaths;
  /** Mount points that the command must not write to. */
  readonlyMounts: readonly string[];
}

/** The words to spawn, and argv[0] if it differs from the path. */
export interface LaunchCommand {
  words: readonly string[];
  argv0?: string;
  /** What is between Drover and the command. It determines how the command is killed. */
  through: "launcher" | "group" | "nothing";
  /** Whether the launcher writes to the status file. */
  reports: boolean;
}

const kept = "DROVER_KEEP_";

/**
 * Variables that affect perl are meant for the command, not for the perl launcher. They are passed under other names, and
 * the launcher renames them back. PERL_BADLANG keeps it from printing locale warnings to the command's stderr.
 */
export function environmentFor(
  launchMethod: LaunchMethod,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (launchMethod.kind !== "perl") return environment;
  const renamed = Object.entries(environment).map(([name, value]) => [steersPerl(name) ? kept + name : name, value]);
  return Object.fromEntries([...renamed, ["PERL_BADLANG", "0"]]);
}

/** The bwrap options that do the same for the launcher inside a sandbox. */
export function bwrapEnvironmentFor(
  launchMethod: LaunchMethod,
  environment: Readonly<Record<string, string>>,
): string[] {
  if (launchMethod.kind !== "perl") return [];
  const steering = Object.entries(environment).filter(([name]) => steersPerl(name));
  return [
    ...steering.flatMap(([name, value]) => ["--unsetenv", name, "--setenv", kept + name, value]),
    "--setenv",
    "PERL_BADLANG",
    "0",
  ];
}

function steersPerl(name: string): boolean {
  return name.startsWith("PERL");
}

/** Whether Node's own spawn is enough. The answer does not depend on the cgroup. */
export function isRaw({ level, merged, command }: LaunchRequest): boolean {
  return level === "none" && !merged && Object.values(command.limits ?? {}).every((value) => value === undefined);
}

export function launchCommandFor(launchMethod: LaunchMethod, request: LaunchRequest): LaunchCommand {
  if (isRaw(request)) return { ...directly(request), through: "nothing", reports: false };
  if (launchMethod.kind === "plain") {
    const through = request.level === "none" || request.onTerminal ? "nothing" : "group";
    const script = shellScript(request);
    if (script === null) return { ...directly(request), through, reports: false };
    return {
      words: [
        "/bin/sh",
        "-c",
        script,
        "sh",
        ...request.cgroupFiles,
        request.path,
        ...(request.command.arguments ?? []),
      ],
      through,
      reports: true,
    };
  }
  const words = [
    ...launchMethod.words,
    ...launcherOptions(request, request.level === "sandbox" ? "pid" : request.level),
    "--",
    request.path,
  ];
  return {
    words: [...words, request.command.executable, ...(request.command.arguments ?? [])],
    // at level none the launcher becomes the command
    through: request.level === "none" ? "nothing" : "launcher",
    reports: true,
  };
}

/** The descriptor on which the launcher reports. */
export const statusDescriptor = 3;

export function launcherOptions(request: LaunchRequest, level: string): string[] {
  const words = ["-p", String(process.pid), "-f", String(statusDescriptor), "-i", level];
  if (request.onTerminal) words.push("-t");
  if (request.merged) words.push("-m");
  if (request.keepLeftovers) words.push("-k");
  for (const [name, value] of rlimits(request.command.limits)) words.push("-l", `${name}=${value}`);
  for (const file of request.cgroupFiles) words.push("-c", file);
  const { hidden, shown, frozen } = request.protectedPaths;
  for (const directory of hidden) words.push("-h", directory);
  for (const directory of shown) words.push("-s", directory);
  for (const directory of frozen) words.push("-o", directory);
  for (const point of request.readonlyMounts) words.push("-r", point);
  return words;
}

type Rlimit = [name: "cpu" | "fsize" | "nofile", value: number];

function rlimits(limits: Limits | undefined): Rlimit[] {
  const found: Rlimit[] = [];
  if (limits?.cpuSeconds !== undefined) found.push(["cpu", limits.cpuSeconds]);
  if (limits?.fileSizeBytes !== undefined) found.push(["fsize", limits.fileSizeBytes]);
  if (limits?.openFiles !== undefined) found.push(["nofile", limits.openFiles]);
  return found;
}

function directly({ path, command }: LaunchRequest): { words: readonly string[]; argv0?: string } {
  const words = [path, ...(command.arguments ?? [])];
  return path === command.executable ? { words } : { words, argv0: command.executable };
}

/** Without a launcher, a shell sets the limits, merges the streams and then executes the command. null if not needed. */
function shellScript(request: LaunchRequest): string | null {
  const orReport = (step: string): string => `|| { echo "E ${step} 1" >&${statusDescriptor}; exit 125; }`;
  const before = [
    ...request.cgroupFiles.map((_, at) => `echo 0 > "$${at + 1}" ${orReport("cgroup")}`),
    ...rlimits(request.command.limits).map(
      ([name, value]) => `ulimit ${shellLimits[name](value)} ${orReport("rlimit")}`,
    ),
  ];
  if (before.length === 0 && !request.merged) return null;
  if (request.cgroupFiles.length > 0) before.push(`shift ${request.cgroupFiles.length}`);
  return [...before, `exec "$@" ${statusDescriptor}>&-${request.merged ? " 2>&1" : ""}`].join("\n");
}

const shellLimits: Record<Rlimit[0], (value: number) => string> = {
  // the hard limit is one second later, so that SIGXCPU arrives before SIGKILL
  cpu: (value) => `-S -t ${value} && ulimit -H -t ${value + 1}`,
  fsize: (value) => `-f ${Math.ceil(value / 512)}`,
  nofile: (value) => `-n ${value}`,
};
