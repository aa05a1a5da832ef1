import { isWithin, realPaths } from "./protected-paths.ts";
import { findExecutable } from "./lookup.ts";
import type { LaunchCommand, LaunchRequest } from "./launch-command.ts";
import { bwrapEnvironmentFor, launcherOptions } from "./launch-command.ts";
import type { LaunchMethod } from "./create-launcher.ts";

/** Where the inner launcher reports. It needs its own file, because the outer one truncates its file at the end. */
export const innerStatusDescriptor = 4;

export interface SandboxPaths {
  workingDirectory: string;
  /** The command's directory for temporary files. */
  tmp: string;
  writable: readonly string[];
  /** Real paths of directories shared with other commands. Inside `writable` they stay read-only, except for writable paths in them. */
  shared: readonly string[];
  environment: Readonly<Record<string, string>>;
}

export function findBwrap(): string | null {
  const found = findExecutable("bwrap", process.env["PATH"], "/");
  return "found" in found ? found.found : null;
}

/**
 * Three programs are nested. The outer launcher creates the PID namespace, so that Drover controls killing. bwrap inside
 * it makes the file system read-only. The inner launcher starts the command and reports exactly how it ended, which bwrap
 * reports only as 128 + n. If the inner launcher reports nothing, bwrap failed.
 *
 * bwrap dies at the SIGTERM that asks the command to stop. To give the command its grace period, the inner launcher
 * outlives its parent (-p 0), and --die-with-parent is not used. The end of the namespace kills everything.
 */
export function sandboxLaunchCommand(
  launchMethod: Extract<LaunchMethod, { words: readonly string[] }>,
  bwrap: string,
  request: LaunchRequest,
  places: SandboxPaths,
): LaunchCommand {
  const passOn = ["-d", String(innerStatusDescriptor)];
  const outer = [...launchMethod.words, ...launcherOptions(request, "pid"), ...passOn, "--", bwrap, "bwrap"];
  const terminal = request.onTerminal ? ["-t"] : [];
  const inner = [
    ...launchMethod.words,
    "-p",
    "0", // see above
    "-f",
    String(innerStatusDescriptor),
    "-i",
    "group",
    ...terminal,
    "--",
    request.path,
    request.command.executable,
  ];
  return {
    words: [
      ...outer,
      ...bwrapOptions(places, request.onTerminal),
      ...bwrapEnvironmentFor(launchMethod, places.environment),
      "--",
      ...inner,
      ...(request.command.arguments ?? []),
    ],
    through: "launcher",
    reports: true,
  };
}

function bwrapOptions(places: SandboxPaths, onTerminal: boolean): string[] {
  const { workingDirectory } = places;
  const words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
  // bwrap itself stays outside, where everything is writable, so root must not find it in /proc
  words.push("--unshare-pid", "--as-pid-1");
  words.push(...writableBinds(places));
  words.push("--chdir", workingDirectory);
  // detach from Drover's terminal, so that the command cannot inject input into it
  if (!onTerminal) words.push("--new-session");
  if (process.getuid?.() === 0) {
    // Settings in /proc/sys belong to root and apply to the whole host: without this, the owner may write them.
    words.push("--remount-ro", "/proc");
    words.push("--cap-drop", "ALL", ...rootMayStill.flatMap((capability) => ["--cap-add", capability]));
  }
  return words;
}

/** Order matters: first a directory that contains a shared one, then the shared one, then the command's own paths in it. */
function writableBinds({ workingDirectory, tmp, writable, shared }: SandboxPaths): string[] {
  const all = [tmp, ...writable, workingDirectory];
  const isAround = (directory: string): boolean =>
    realPaths([directory]).some((real) => shared.some((path) => path !== real && isWithin(path, real)));
  return [
    ...all.filter(isAround).flatMap((directory) => ["--bind-try", directory, directory]),
    ...shared.flatMap((directory) => ["--ro-bind-try", directory, directory]),
    ...all.filter((each) => !isAround(each)).flatMap((directory) => ["--bind-try", directory, directory]),
  ];
}

/** The capabilities root needs for files and users, and none that allow mounting, module loading, tracing or rebooting. */
const rootMayStill = [
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
