import type { Command, Isolation, Limits } from "../model/process.ts";
import type { ProtectedPaths } from "./protected-paths.ts";
import type { LaunchMethod } from "./create-launcher.ts";

/** What is asked of a launchMethod, with everything looked up. */
export interface LaunchRequest {
  /** The file to execute; a bare name only at the raw launchMethod. */
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

/** The words to spawn, and the name the program is given where it is not its path. */
export interface LaunchCommand {
  words: readonly string[];
  argv0?: string;
  /** Who stands between Drover and the command, which decides how it is killed. */
  through: "launcher" | "group" | "nothing";
  /** Whether something is written to the status file. */
  reports: boolean;
}

const kept = "DROVER_KEEP_";

/**
 * Variables that steer perl are for the command's perl and not for our launcher in perl: it is given them
 * under other names, and gives them back. Nor shall it complain about a locale on the command's stderr.
 */
export function environmentFor(
  launchMethod: LaunchMethod,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (launchMethod.kind !== "perl") return environment;
  const renamed = Object.entries(environment).map(([name, value]) => [steersPerl(name) ? kept + name : name, value]);
  return Object.fromEntries([...renamed, ["PERL_BADLANG", "0"]]);
}

/** The same by bwrap, for the launcher inside it. */
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

/** Is Node's own spawn enough? Asked before the cgroup is made and after, with the same answer. */
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

/** The descriptor the launcher reports on. */
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

/** Without a launcher a shell sets the limits and joins the streams, then becomes the command. null: not needed. */
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
  // the hard limit a second later, so that SIGXCPU tells what happened before SIGKILL
  cpu: (value) => `-S -t ${value} && ulimit -H -t ${value + 1}`,
  fsize: (value) => `-f ${Math.ceil(value / 512)}`,
  nofile: (value) => `-n ${value}`,
};
