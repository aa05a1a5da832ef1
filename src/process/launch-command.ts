import type { Command, Isolation, Limits } from "../model/process.ts";
import type { ProtectedPaths } from "./protected-paths.ts";
import type { LaunchMethod } from "./launch-method-selector.ts";

/** The input of a launch method, with all paths resolved. */
export interface LaunchRequest {
  /** The file to execute. A bare name only if Node's own spawn is used. */
  path: string;
  command: Command;
  level: Isolation | "auto";
  hasTerminal: boolean;
  mergesOutput: boolean;
  keepLeftovers: boolean;
  cgroupFiles: readonly string[];
  protectedPaths: ProtectedPaths;
  /** Mount points that the command must not write to. */
  readonlyMounts: readonly string[];
}

/** The program and its arguments to spawn. */
export interface LaunchCommand {
  argv: readonly string[];
  /** argv[0], if it differs from the path. */
  argv0?: string;
  /** What keeps the command's processes together, so that Drover can kill them all. */
  containment: "launcher" | "group" | "nothing";
  /** Whether the launcher writes to the status file. */
  reportsStatus: boolean;
}

/** Whether Node's own spawn is enough. */
export function needsNoLauncher({ level, mergesOutput, command }: LaunchRequest): boolean {
  return level === "none" && !mergesOutput && Object.values(command.limits ?? {}).every((value) => value === undefined);
}

export function toLaunchCommand(launchMethod: LaunchMethod, request: LaunchRequest): LaunchCommand {
  if (needsNoLauncher(request)) return { ...toDirectCommand(request), containment: "nothing", reportsStatus: false };
  if (launchMethod.kind === "plain") {
    const containment = request.level === "none" || request.hasTerminal ? "nothing" : "group";
    const script = buildShellScript(request);
    if (script === null) return { ...toDirectCommand(request), containment, reportsStatus: false };
    return {
      argv: ["/bin/sh", "-c", script, "sh", ...request.cgroupFiles, request.path, ...(request.command.arguments ?? [])],
      containment,
      reportsStatus: true,
    };
  }
  const argv = [
    ...launchMethod.argv,
    ...toLauncherOptions(request, request.level === "sandbox" ? "pid" : request.level),
    "-u",
    "--",
    request.path,
  ];
  return {
    argv: [...argv, request.command.executable, ...(request.command.arguments ?? [])],
    // At level none the launcher executes the command in its own place.
    containment: request.level === "none" ? "nothing" : "launcher",
    reportsStatus: true,
  };
}

/** The descriptor on which the launcher reports. */
export const statusDescriptor = 3;

export function toLauncherOptions(request: LaunchRequest, level: string): string[] {
  const argv = ["-p", String(process.pid), "-f", String(statusDescriptor), "-i", level];
  if (request.hasTerminal) argv.push("-t");
  if (request.mergesOutput) argv.push("-m");
  if (request.keepLeftovers) argv.push("-k");
  for (const [name, value] of toRlimits(request.command.limits)) argv.push("-l", `${name}=${value}`);
  for (const file of request.cgroupFiles) argv.push("-c", file);
  const { hidden, shown, readOnly } = request.protectedPaths;
  for (const directory of hidden) argv.push("-h", directory);
  for (const directory of shown) argv.push("-s", directory);
  for (const directory of readOnly) argv.push("-o", directory);
  for (const point of request.readonlyMounts) argv.push("-r", point);
  return argv;
}

type Rlimit = [name: "cpu" | "fsize" | "nofile", value: number];

function toRlimits(limits: Limits | undefined): Rlimit[] {
  const rlimits: Rlimit[] = [];
  if (limits?.cpuSeconds !== undefined) rlimits.push(["cpu", limits.cpuSeconds]);
  if (limits?.fileSizeBytes !== undefined) rlimits.push(["fsize", limits.fileSizeBytes]);
  if (limits?.openFiles !== undefined) rlimits.push(["nofile", limits.openFiles]);
  return rlimits;
}

function toDirectCommand({ path, command }: LaunchRequest): { argv: readonly string[]; argv0?: string } {
  const argv = [path, ...(command.arguments ?? [])];
  return path === command.executable ? { argv } : { argv, argv0: command.executable };
}

/** Without a launcher, a shell sets the limits, merges the streams and executes the command. Returns null if no shell is needed. */
function buildShellScript(request: LaunchRequest): string | null {
  const orReport = (step: string): string => `|| { echo "E ${step} 1" >&${statusDescriptor}; exit 125; }`;
  const setup = [
    ...request.cgroupFiles.map((_, index) => `echo 0 > "$${index + 1}" ${orReport("cgroup")}`),
    ...toRlimits(request.command.limits).map(
      ([name, value]) => `ulimit ${shellLimits[name](value)} ${orReport("rlimit")}`,
    ),
  ];
  if (setup.length === 0 && !request.mergesOutput) return null;
  if (request.cgroupFiles.length > 0) setup.push(`shift ${request.cgroupFiles.length}`);
  return [...setup, `exec "$@" ${statusDescriptor}>&-${request.mergesOutput ? " 2>&1" : ""}`].join("\n");
}

const shellLimits: Record<Rlimit[0], (value: number) => string> = {
  // The hard limit is one second later, so that SIGXCPU arrives before SIGKILL.
  cpu: (value) => `-S -t ${value} && ulimit -H -t ${value + 1}`,
  fsize: (value) => `-f ${Math.ceil(value / 512)}`,
  nofile: (value) => `-n ${value}`,
};
