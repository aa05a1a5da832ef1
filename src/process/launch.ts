import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";
import type { Command, CommandFault, Isolation, StartOptions } from "../model/process.ts";
import { createCgroup, type Cgroup } from "./cgroup.ts";
import {
  cannotKeepLeftovers,
  cannotStart,
  directoryReplaced,
  execRefused,
  isolationMissing,
  limitMissing,
  notExecutable,
  notFound,
} from "./faults.ts";
import { toLaunchCommand, needsNoLauncher, type LaunchCommand, type LaunchRequest } from "./launch-command.ts";
import { findInheritedVariable } from "./environment.ts";
import { buildLauncherEnvironment } from "./launcher-environment.ts";
import { isExecutable, type LaunchMethodSelector, type LaunchMethod } from "./launch-method-selector.ts";
import { nothingProtected, resolveProtectedPaths, resolveRealPaths } from "./protected-paths.ts";
import { findExecutable } from "./find-executable.ts";
import { findBwrap, toSandboxLaunchCommand } from "./sandbox.ts";
import { openStatusFile } from "./launcher-status.ts";
import { O_PATH, openWorkingDirectory, type WorkingDirectory } from "./working-directory.ts";

/** A started process, or one that failed to start and will emit an error event. */
export interface LaunchedProcess {
  child: ChildProcess;
  containment: LaunchCommand["containment"];
  level: Isolation | "auto";
  statusFile: number | null;
  /** The status file of the launcher inside a sandbox. */
  innerStatusFile: number | null;
  cgroup: Cgroup | null;
}

export type LaunchResult = LaunchedProcess | { fault: CommandFault };

/** Tries the launch methods in order until one starts the command. Synchronous, so that a failed spawn is detected at once. */
export function launch(
  launchMethodSelector: LaunchMethodSelector,
  command: Command,
  options: StartOptions,
  environment: Record<string, string>,
): LaunchResult {
  const { isolation } = options;
  if (options.leftovers === "keep" && (isolation === "pid" || isolation === "sandbox"))
    return { fault: cannotKeepLeftovers(isolation) };
  const directory = openWorkingDirectory(command.workingDirectory ?? ".", options.workRoot);
  if ("replaced" in directory) return { fault: directoryReplaced(command.workingDirectory ?? ".") };
  if ("errno" in directory) return { fault: cannotOpen(directory.errno, command, environment["PATH"]) };
  try {
    let request = toLaunchRequest(command, options);
    if (!needsNoLauncher(request)) {
      const lookup = findExecutable(command.executable, environment["PATH"], directory.cwd);
      if ("missing" in lookup)
        return {
          fault: lookup.missing === "nowhere" ? notFound(command.executable) : notExecutable(command.executable),
        };
      request = { ...request, path: toRelativePath(lookup.found, directory) };
    }
    return launchIn(directory, launchMethodSelector, request, options, environment);
  } finally {
    directory.close();
  }
}

/** A path in the working directory is relative: the launcher starts there, and does not get this descriptor. */
function toRelativePath(path: string, { cwd, fd }: WorkingDirectory): string {
  return fd !== null && path.startsWith(`${cwd}/`) ? `./${path.slice(cwd.length + 1)}` : path;
}

function launchIn(
  directory: WorkingDirectory,
  launchMethodSelector: LaunchMethodSelector,
  requested: LaunchRequest,
  options: StartOptions,
  environment: Record<string, string>,
): LaunchResult {
  let request = requested;
  const cgroupResult = createCgroup(request.command.limits);
  if (!cgroupResult.ok) return { fault: limitMissing(cgroupResult.limit, cgroupResult.reason) };
  if (cgroupResult.cgroup !== null)
    request = {
      ...request,
      cgroupFiles: cgroupResult.cgroup.procsFiles,
      readonlyMounts: cgroupResult.cgroup.mountPoints,
    };

  const result = tryInOrder(directory, launchMethodSelector, request, options, environment);
  if ("fault" in result) void cgroupResult.cgroup?.remove(); // The cgroup is empty, so the first attempt removes it.
  return "fault" in result ? result : { ...result, level: request.level, cgroup: cgroupResult.cgroup };
}

function toLaunchRequest(command: Command, options: StartOptions): LaunchRequest {
  const keepLeftovers = options.leftovers === "keep";
  const level = chooseLevel(options.isolation ?? "auto", keepLeftovers);
  const canProtect = level !== "group" && level !== "none";
  return {
    path: command.executable,
    command,
    level,
    // A program that reads from a terminal must stay in its foreground process group.
    hasTerminal: options.stdin === "inherit" && isatty(0),
    mergesOutput: options.output === "merged",
    keepLeftovers,
    cgroupFiles: [],
    protectedPaths: canProtect ? resolveProtectedPaths(options) : nothingProtected,
    readonlyMounts: [],
  };
}

/** With `auto`, leftovers are kept at level group: a PID namespace would kill them. */
function chooseLevel(requested: LaunchRequest["level"], keepLeftovers: boolean): LaunchRequest["level"] {
  return keepLeftovers && requested === "auto" ? "group" : requested;
}

type SpawnedProcess = Pick<LaunchedProcess, "child" | "containment" | "statusFile" | "innerStatusFile">;

function tryInOrder(
  directory: WorkingDirectory,
  launchMethodSelector: LaunchMethodSelector,
  request: LaunchRequest,
  options: StartOptions,
  environment: Record<string, string>,
): SpawnedProcess | { fault: CommandFault } {
  for (;;) {
    const launchMethod: LaunchMethod = needsNoLauncher(request) ? { kind: "plain" } : launchMethodSelector.best();
    const launchCommand = buildLaunchCommand(launchMethod, directory, request, options);
    if ("fault" in launchCommand) return launchCommand;
    const statusFile = launchCommand.reportsStatus ? openStatusFile() : null;
    const innerStatusFile = request.level === "sandbox" && statusFile !== null ? openStatusFile() : null;
    const launcher = request.level === "sandbox" ? openLauncher(launchMethod) : null;
    const launcherFile = typeof launcher === "number" ? launcher : null;
    const files = [statusFile, ...(request.level === "sandbox" ? [innerStatusFile, directory.fd, launcherFile] : [])];
    const outcome =
      typeof launcher === "object" && launcher !== null
        ? launcher
        : trySpawn(
            launchCommand,
            directory,
            buildLauncherEnvironment(launchMethod, environment),
            toStdio(
              options,
              files.filter((file) => file !== null),
            ),
          );
    if (launcherFile !== null) closeSync(launcherFile);
    if (
      "child" in outcome &&
      (outcome.child.pid !== undefined || launchMethod.kind === "plain" || isExecutable(launchMethod.argv[0]!))
    ) {
      return { child: outcome.child, containment: launchCommand.containment, statusFile, innerStatusFile };
    }
    for (const file of [statusFile, innerStatusFile]) if (file !== null) closeSync(file);
    if (launchMethod.kind === "plain" || ("errno" in outcome && !launcherErrors.has(outcome.errno))) {
      return { fault: execRefused("errno" in outcome ? outcome.errno : "EIO", request.command, environment["PATH"]) };
    }
    launchMethodSelector.drop(launchMethod);
  }
}

/** A shortage of descriptors or memory has its own advice. */
function cannotOpen(errno: string, command: Command, path: string | undefined): CommandFault {
  if (["EMFILE", "ENFILE", "ENOMEM"].includes(errno)) return execRefused(errno, command, path);
  return cannotStart(`its working directory ${command.workingDirectory ?? "."} cannot be opened (${errno})`);
}

/** Errors that concern the launcher, not the command: it is built for another machine, or not allowed to run here. */
const launcherErrors = new Set(["ENOEXEC", "EACCES", "EPERM", "ENOENT", "EINVAL"]);

function buildLaunchCommand(
  launchMethod: LaunchMethod,
  { realPath }: WorkingDirectory,
  request: LaunchRequest,
  options: StartOptions,
): LaunchCommand | { fault: CommandFault } {
  if (launchMethod.kind === "plain") {
    if (request.level !== "pid" && request.level !== "sandbox") return toLaunchCommand(launchMethod, request);
    return {
      fault: isolationMissing(request.level, "it needs Linux, and Drover's launcher or perl"),
    };
  }
  if (request.level !== "sandbox") return toLaunchCommand(launchMethod, request);
  const bwrap = findBwrap();
  if (bwrap === null) return { fault: isolationMissing("sandbox", "bwrap is not installed (package bubblewrap)") };
  return toSandboxLaunchCommand(launchMethod, bwrap, request, {
    workingDirectory: realPath,
    tmp: options.temporaryDirectory ?? defaultTemporaryDirectory(options),
    writable: options.writable ?? [],
    shared: resolveRealPaths(options.show ?? []),
  });
}

/** Opens the static launcher, which also starts the command inside a sandbox. */
function openLauncher(launchMethod: LaunchMethod): number | { errno: string } | null {
  if (launchMethod.kind !== "static") return null;
  try {
    return openSync(launchMethod.argv[0]!, O_PATH);
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "string") return { errno: error.code };
    throw error;
  }
}

/** Not from the command's own variables: the author of the command would choose what it can write to. */
function defaultTemporaryDirectory({ environment, parentEnvironment = process.env }: StartOptions): string {
  return findInheritedVariable("TMPDIR", { options: environment, parent: parentEnvironment }) ?? "/tmp";
}

/** Node throws some spawn errors and emits others. Returns the errno of a thrown one. */
function trySpawn(
  launchCommand: LaunchCommand,
  { cwd }: WorkingDirectory,
  environment: Readonly<Record<string, string>>,
  stdio: StdioOptions,
): { child: ChildProcess } | { errno: string } {
  const [file, ...args] = launchCommand.argv;
  try {
    const child = spawn(file!, args, {
      env: environment,
      stdio,
      detached: launchCommand.containment === "group",
      cwd,
      argv0: launchCommand.argv0,
    });
    // The error event follows later, even if the next launch method is tried instead of this child.
    if (child.pid === undefined) child.on("error", () => undefined);
    // Without free descriptors, Node returns before it creates the streams, contrary to its types.
    return (child.stdio as unknown) === undefined ? { errno: "EMFILE" } : { child };
  } catch (error) {
    if (error instanceof Error && "code" in error && typeof error.code === "string" && "syscall" in error)
      return { errno: error.code };
    throw error;
  }
}

function toStdio(options: StartOptions, files: readonly number[]): StdioOptions {
  const stdin = options.stdin ?? "none";
  const output = options.output ?? "both";
  return [
    stdin === "none" ? "ignore" : stdin === "inherit" ? "inherit" : "pipe",
    output === "none" ? "ignore" : "pipe",
    output === "both" ? "pipe" : "ignore",
    ...files,
  ];
}
