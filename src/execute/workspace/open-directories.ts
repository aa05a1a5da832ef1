import { realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import type { Invocation, RunContext } from "../../model/executor.ts";
import type { SessionFile } from "../../model/session-state.ts";
import type { FailureReason } from "../../model/states.ts";
import { type DirectoryLock, isWithin, lockDirectory, type LockOptions } from "./directory-lock.ts";
import type { HeldDirectory } from "./held-directory.ts";
import { getWorkspaceKind } from "./workspace-kind.ts";
import { makePrivateDirectory, removeNonDirectories } from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { restoreFiles } from "./session-files.ts";
import {
  type SessionDirectoryResult,
  openSessionDirectory,
  type SessionDirectoryOptions,
  openSharedDirectory,
} from "./session-directory.ts";
import type { SessionOwner } from "./session-marks.ts";
import { removeSessionDirectory } from "./session-sweep.ts";

/** The directories that a runner gives to its runs. */
export interface RunnerDirectories {
  /** The runner's project_dir. */
  projectDirectory: string;
  /** Other directories in which the operator lets runs work. */
  roots: readonly string[];
  home: string;
  /** The parent of each session's HOME; null if runs use the operator's HOME. */
  sessionHomes: string | null;
  /** The parent of the work directories of sessions that have no project. */
  scratch: string;
  /** The current owner of new session directories. */
  owner: () => SessionOwner;
  /** The parent of each run's temporary directory. Used by this runner alone. */
  tmpRoot: string;
  /** Drover's state directory. Of its contents, runs use only the directories above. */
  stateDirectory: string;
  /** The parent of the directories above that are inside the state directory. */
  runsDirectory: string;
}

/** The directories that a run writes to. */
export interface WrittenDirectories {
  /** Created by Drover for the run or its session. */
  owned: readonly string[];
  /** Existing directories in which the run works. */
  shared: readonly string[];
}

export type OpenDirectoriesResult =
  | {
      ok: true;
      dirs: RunContext["dirs"];
      writtenDirectories: WrittenDirectories;
      /**
       * Lets other runs use the work directory. With `removeSession`, also removes the session's directories, because no
       * later run can continue it.
       */
      close(removeSession: boolean): Promise<void>;
      /** Removes the temporary directory. After a crash, `settleInterrupted` removes it. */
      removeTmp(): Promise<void>;
    }
  | { ok: false; reason: FailureReason; message: string }
  /** The run was stopped while it waited for its directory or copied one. */
  | { ok: false; reason: null };

export interface OpenOptions {
  /** The name of the run's temporary directory. */
  tmpName: string;
  directories: RunnerDirectories;
  lockOptions: LockOptions;
  signal: AbortSignal;
  /** The saved state of the session that the run continues, if any. */
  saved?: { here: boolean; portable: boolean; loadFiles(): AsyncIterable<SessionFile> };
  onWaiting: (holder: { directory: string; run_id: string }) => void;
}

/**
 * Opens the directories of one run. Refuses a work directory that the operator did not allow. `dirs.work` is a real path:
 * a process starts only if it still is one (`StartOptions.workRoot`).
 */
export async function openDirectories(invocation: Invocation, options: OpenOptions): Promise<OpenDirectoriesResult> {
  const { directories } = options;
  const home = await openHome(invocation, options);
  if (!home.ok) return home;
  const work = await openWorkDirectory(invocation, options);
  if (!work.ok) return work;
  const tmpPath = join(directories.tmpRoot, options.tmpName);
  const tmp = createLazyDirectory(directories.stateDirectory, tmpPath);
  const isScratch = getWorkspaceKind(invocation) === "scratch";
  return {
    ok: true,
    dirs: {
      work: work.path,
      home: home.path,
      get tmp() {
        return tmp.path();
      },
    },
    writtenDirectories: {
      owned: [tmpPath, ...(directories.sessionHomes === null ? [] : [home.path]), ...(isScratch ? [work.path] : [])],
      shared: isScratch ? [] : [work.path],
    },
    async close(removeSession) {
      await work.lock?.release();
      if (!removeSession || getWorkspaceKind(invocation) === "plain") return;
      if (isScratch) await removeSessionDirectory(directories.scratch, invocation.session_id, directories.owner());
      if (directories.sessionHomes !== null)
        await removeSessionDirectory(directories.sessionHomes, invocation.session_id, directories.owner());
    },
    removeTmp: tmp.remove,
  };
}

type AllowedDirectoryResult = { ok: true; path: string } | { ok: false; reason: FailureReason; message: string };
type WorkDirectoryResult =
  | { ok: true; path: string; lock?: DirectoryLock }
  | Exclude<OpenDirectoriesResult, { ok: true }>;

async function openWorkDirectory(invocation: Invocation, options: OpenOptions): Promise<WorkDirectoryResult> {
  const { directories } = options;
  const kind = getWorkspaceKind(invocation);
  if (kind === "scratch") {
    const opened = await openSessionDirectory(invocation, {
      root: directories.scratch,
      owner: directories.owner(),
      label: "work directory",
      signal: options.signal,
      ...buildRestoreOption(options.saved, restoreFiles),
    });
    return opened.ok ? { ok: true, path: await resolveSessionPath(opened.path) } : opened;
  }
  const { project_dir } = invocation;
  const work: AllowedDirectoryResult =
    project_dir === null
      ? { ok: true, path: (await findRealPath(directories.projectDirectory)) ?? directories.projectDirectory }
      : await checkAllowed(project_dir, directories);
  if (!work.ok || kind === "plain") return work;
  const { path } = work;
  const lock = await lockDirectory(path, invocation.run_id, options.lockOptions, options.signal, options.onWaiting);
  if (!lock) return { ok: false, reason: null };
  // The run that held the directory may have replaced it with a symlink to a directory that is not allowed.
  if ((await findRealPath(path)) === path) return { ok: true, path, lock };
  await lock.release();
  const message = `The directory ${path} was replaced or removed while the run waited for it. Restore the directory, then retry the run.`;
  return { ok: false, reason: "refused", message };
}

/** Resolves only the operator's part of the path: a run could replace the rest with a symlink. */
async function resolveSessionPath(path: string): Promise<string> {
  const root = dirname(path);
  return join(await realpath(dirname(root)), basename(root), basename(path));
}

/** Builds the option to restore the saved files if the directory is missing or older than they are. */
function buildRestoreOption(
  saved: OpenOptions["saved"],
  restoreContents: (directory: HeldDirectory, files: AsyncIterable<SessionFile>) => Promise<void>,
): Pick<SessionDirectoryOptions, "restore"> {
  if (!saved?.portable) return {};
  return {
    restore: { always: !saved.here, restoreContents: (directory) => restoreContents(directory, saved.loadFiles()) },
  };
}

async function openHome(
  invocation: Invocation,
  { directories, signal, saved }: OpenOptions,
): Promise<SessionDirectoryResult> {
  if (directories.sessionHomes === null) return { ok: true, path: directories.home };
  const home = {
    root: directories.sessionHomes,
    owner: directories.owner(),
    label: "HOME",
    signal,
    // A HOME has no saved files, so it starts empty.
    ...buildRestoreOption(saved, async () => {}),
  };
  return getWorkspaceKind(invocation) === "plain"
    ? openSharedDirectory(invocation, home)
    : openSessionDirectory(invocation, home);
}

/** A directory that is created on first use, because a run without processes needs none. */
function createLazyDirectory(base: string, path: string): { path(): string; remove(): Promise<void> } {
  let isCreated = false;
  return {
    path() {
      // Created each time, because a process of the run may have replaced it.
      makePrivateDirectory(base, path);
      isCreated = true;
      return path;
    },
    async remove() {
      if (!isCreated) return;
      removeNonDirectories(base, dirname(path));
      await removeTree(base, path);
    },
  };
}

/** Compares real paths, so that a symlink cannot point outside. */
async function checkAllowed(
  projectPath: string,
  { projectDirectory, roots }: RunnerDirectories,
): Promise<AllowedDirectoryResult> {
  const refuse = (message: string): AllowedDirectoryResult => ({ ok: false, reason: "refused", message });
  if (!isAbsolute(projectPath))
    return refuse(`project_dir must be an absolute path, not ${JSON.stringify(projectPath)}.`);
  const realProject = await findRealPath(projectPath);
  if (realProject === null) return refuse(`project_dir ${projectPath} does not exist on this runner.`);
  if ((await findRealPath(realProject)) !== realProject)
    return refuse(`The real path of project_dir ${projectPath} is not valid UTF-8. Rename its directories.`);
  if (!(await stat(realProject)).isDirectory()) return refuse(`project_dir ${projectPath} is not a directory.`);
  for (const root of [projectDirectory, ...roots]) {
    const realRoot = await findRealPath(root);
    if (realRoot !== null && isWithin(realProject, realRoot)) return { ok: true, path: realProject };
  }
  return refuse(
    `project_dir ${projectPath} is outside the directories that this runner allows. Add it to project_roots in the runner's profile.`,
  );
}

async function findRealPath(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (
      error instanceof Error &&
      "code" in error &&
      ["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"].includes(String(error.code))
    )
      return null;
    throw error;
  }
}
