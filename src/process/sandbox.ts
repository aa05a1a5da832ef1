import { isWithin, resolveRealPaths } from "./protected-paths.ts";
import { findExecutable } from "./find-executable.ts";
import type { LaunchCommand, LaunchRequest } from "./launch-command.ts";
import { toLauncherOptions } from "./launch-command.ts";
import type { LaunchMethod } from "./launch-method-selector.ts";

/**
 * The descriptor on which the inner launcher reports. The inner launcher needs its own file, because the outer one
 * truncates its file at the end.
 */
export const innerStatusDescriptor = 4;
/** The descriptor of the working directory, from the outer launcher to the inner one. */
const directoryDescriptor = 5;
/** The descriptor of the static launcher's program, for the inner launcher. */
const launcherDescriptor = 6;
/**
 * Where the outer launcher binds the working directory for bwrap. bwrap binds by path, and another process could
 * replace the directory's own path with a link. Nobody can replace a directory of /proc, and the sandbox gets a new
 * /proc. The kernel lets a user mount a new /proc only if nothing is mounted inside the present one, except on
 * directories that exist to be mount points, such as this one.
 */
const directoryPoint = "/proc/fs/nfsd";

export interface SandboxPaths {
  /** A real path. */
  workingDirectory: string;
  /** The directory for temporary files. */
  tmp: string;
  writable: readonly string[];
  /** Real paths of directories shared with other commands. Inside `writable` they stay read-only, except for writable paths inside them. */
  shared: readonly string[];
}

export function findBwrap(): string | null {
  const lookup = findExecutable("bwrap", process.env["PATH"], "/");
  return "found" in lookup ? lookup.found : null;
}

/**
 * Three programs are nested. The outer launcher creates the PID namespace, so that Drover controls killing. bwrap inside
 * it makes the file system read-only. The inner launcher starts the command and reports exactly how it ended, which bwrap
 * reports only as 128 + n. If the inner launcher reports nothing, bwrap failed.
 *
 * bwrap mounts the working directory at its path. Another process could meanwhile replace the path with a link, so that
 * the directory covers other files of the sandbox. The inner launcher then starts nothing (-a).
 *
 * The SIGTERM that stops the command also kills bwrap. To give the command its grace period, the inner launcher
 * outlives its parent (-p 0), and --die-with-parent is not used. The end of the namespace kills everything.
 */
export function toSandboxLaunchCommand(
  launchMethod: Extract<LaunchMethod, { argv: readonly string[] }>,
  bwrap: string,
  request: LaunchRequest,
  paths: SandboxPaths,
): LaunchCommand {
  const bwrapSupportOptions = [
    "-d",
    String(innerStatusDescriptor),
    "-w",
    String(directoryDescriptor),
    "-b",
    directoryPoint,
    ...(launchMethod.kind === "static" ? ["-d", String(launcherDescriptor)] : []),
  ];
  const outer = [
    ...launchMethod.argv,
    ...toLauncherOptions(request, "pid"),
    ...bwrapSupportOptions,
    "--",
    bwrap,
    "bwrap",
  ];
  const terminal = request.hasTerminal ? ["-t"] : [];
  const inner = [
    // By descriptor: bwrap's mounts could cover the launcher's path with another program. perl has no such protection.
    ...(launchMethod.kind === "static" ? [`/proc/self/fd/${launcherDescriptor}`] : launchMethod.argv),
    "-p",
    "0", // See above: it outlives bwrap.
    "-f",
    String(innerStatusDescriptor),
    "-e",
    String(directoryDescriptor),
    "-a",
    paths.workingDirectory,
    "-i",
    "group",
    ...terminal,
    "-u",
    "--",
    request.path,
    request.command.executable,
  ];
  return {
    argv: [
      ...outer,
      ...toBwrapOptions(paths, request.hasTerminal),
      "--",
      ...inner,
      ...(request.command.arguments ?? []),
    ],
    containment: "launcher",
    reportsStatus: true,
  };
}

function toBwrapOptions(paths: SandboxPaths, hasTerminal: boolean): string[] {
  const { workingDirectory } = paths;
  const argv = ["--ro-bind", "/", "/", "--dev", "/dev", ...toWritableBinds(paths)];
  // After the binds: if a link redirects one of them to /proc, this covers it, and the inner launcher can trust /proc.
  argv.push("--proc", "/proc");
  // bwrap runs outside the sandbox: hide it, because root could reach writable files through its entry in /proc.
  argv.push("--unshare-pid", "--as-pid-1");
  argv.push("--chdir", workingDirectory);
  // Detach from Drover's terminal, so that the command cannot inject input into it.
  if (!hasTerminal) argv.push("--new-session");
  if (process.getuid?.() === 0) {
    // Root owns the settings in /proc/sys, which apply to the whole host, and could otherwise write them.
    argv.push("--remount-ro", "/proc");
    argv.push("--cap-drop", "ALL", ...rootCapabilities.flatMap((capability) => ["--cap-add", capability]));
  }
  return argv;
}

/** Order matters: first a directory that contains a shared one, then the shared one, then the command's own paths in it. */
function toWritableBinds({ workingDirectory, tmp, writable, shared }: SandboxPaths): string[] {
  const all = [tmp, ...writable, workingDirectory];
  const containsShared = (directory: string): boolean =>
    resolveRealPaths([directory]).some((real) => shared.some((path) => path !== real && isWithin(path, real)));
  const bind = (directory: string): string[] =>
    directory === workingDirectory ? ["--bind", directoryPoint, directory] : ["--bind-try", directory, directory];
  return [
    ...all.filter(containsShared).flatMap(bind),
    ...shared.flatMap((directory) => ["--ro-bind-try", directory, directory]),
    ...all.flatMap((directory) => (containsShared(directory) ? [] : bind(directory))),
  ];
}

/** The capabilities root needs for files and users, and none that allow mounting, module loading, tracing or rebooting. */
const rootCapabilities = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_CHROOT",
];
