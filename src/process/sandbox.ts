import { isWithin, realPaths } from "./protected-paths.ts";
import { findExecutable } from "./lookup.ts";
import type { LaunchCommand, LaunchRequest } from "./launch-command.ts";
import { bwrapEnvironmentFor, launcherOptions } from "./launch-command.ts";
import type { LaunchMethod } from "./create-launcher.ts";

/** Where the launcher inside reports: a file of its own, as the outer one empties its file at the end. */
export const innerStatusDescriptor = 4;

export interface SandboxPaths {
  workingDirectory: string;
  /** Where the command is told to put temporary files. */
  tmp: string;
  writable: readonly string[];
  /** Real paths of directories that other commands use too: one that `writable` contains stays read-only but for what it names in there. */
  shared: readonly string[];
  environment: Readonly<Record<string, string>>;
}

export function findBwrap(): string | null {
  const found = findExecutable("bwrap", process.env["PATH"], "/");
  return "found" in found ? found.found : null;
}

/**
 * Our launcher makes the PID namespace, so that killing is ours; bwrap in it makes the file system
 * read-only; our launcher again, inside, starts the command and reports exactly how it ended, which
 * bwrap only gives as 128 + n. Where the inner one reports nothing, bwrap failed.
 *
 * bwrap dies at the SIGTERM that asks the command to stop. So that the command has its grace, the inner
 * launcher outlives its parent (-p 0), and there is no --die-with-parent; the namespace ends everything.
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
  // bwrap itself stays outside, where everything is writable: root must not find it in /proc
  words.push("--unshare-pid", "--as-pid-1");
  words.push(...writableBinds(places));
  words.push("--chdir", workingDirectory);
  // away from Drover's terminal, lest the command types into it
  if (!onTerminal) words.push("--new-session");
  if (process.getuid?.() === 0)
    words.push("--cap-drop", "ALL", ...rootMayStill.flatMap((capability) => ["--cap-add", capability]));
  return words;
}

/** In this order: a folder that contains a shared one, the shared one over it, and what is the command's own in there. */
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

/** What root needs for files and users; nothing that could mount, load, trace or reboot. */
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
