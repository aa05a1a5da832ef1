import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type { Invocation, RunContext } from "../../model/executor.ts";
import type { SessionFile } from "../../model/session-state.ts";
import type { FailureReason } from "../../model/states.ts";
import { type DirectoryLock, isWithin, lockDirectory, type LockOptions } from "./directory-lock.ts";
import { workspaceKindOf } from "./workspace-kind.ts";
import { makePrivateDirectory, removeNonDirectories } from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { restoreFiles } from "./session-files.ts";
import {
  type SessionDirectory,
  openSessionDirectory,
  type SessionDirectoryOptions,
  openSharedDirectory,
} from "./session-directory.ts";
import type { SessionOwner } from "./session-marks.ts";
import { removeSessionDirectory } from "./session-sweep.ts";

export interface RunnerDirectories {
  /** The runner's own project_dir. */
  projectDir: string;
  /** Where else its operator lets runs work. */
  roots: readonly string[];
  home: string;
  /** Each session gets a HOME of its own in here; null: the operator's own. */
  sessionHomes: string | null;
  /** Each session that works nowhere else gets a folder of its own in here. */
  scratch: string;
  /** For whom sessions have their folders, as of now. */
  owner: () => SessionOwner;
  /** Of this runner alone: each run gets a folder of its own in it. */
  tmpRoot: string;
  /** Drover's own: nothing in there is a run's but the folders above. */
  stateDirectory: string;
  /** The half of it that runs work in. */
  runs: string;
}

/** Where a run keeps what it writes. */
export interface RunDirectories {
  /** Made by Drover, for it or its session. */
  own: readonly string[];
  /** Somebody else's, in which it works. */
  shared: readonly string[];
}

export type Opened =
  | {
      ok: true;
      dirs: RunContext["dirs"];
      folders: RunDirectories;
      /** `forget`: no later run can work in this session, so that its own folders go too. */
      close(forget: boolean): Promise<void>;
    }
  | { ok: false; reason: FailureReason; message: string }
  /** It was stopped while it waited for its directory, or while one was copied. */
  | { ok: false; reason: null };

export interface OpenOptions {
  name: string;
  directories: RunnerDirectories;
  locks: LockOptions;
  signal: AbortSignal;
  /** Of the session that the run continues, where the record has it. */
  saved?: { here: boolean; portable: boolean; files(): AsyncIterable<SessionFile> };
  onWaiting: (holder: { directory: string; run_id: string }) => void;
}

/** The directories of one run. A work directory outside what the operator allowed is refused. */
export async function openDirectories(invocation: Invocation, options: OpenOptions): Promise<Opened> {
  const { directories } = options;
  const home = await homeOf(invocation, options);
  if (!home.ok) return home;
  const work = await workOf(invocation, options);
  if (!work.ok) return work;
  const tmpPath = join(directories.tmpRoot, options.name);
  const tmp = lazyDirectory(directories.stateDirectory, tmpPath);
  const isScratch = workspaceKindOf(invocation) === "scratch";
  return {
    ok: true,
    dirs: {
      work: work.path,
      home: home.path,
      get tmp() {
        return tmp.path();
      },
    },
    folders: {
      own: [tmpPath, ...(directories.sessionHomes === null ? [] : [home.path]), ...(isScratch ? [work.path] : [])],
      shared: isScratch ? [] : [work.path],
    },
    async close(forget) {
      await work.lock?.release();
      await tmp.remove();
      if (!forget || workspaceKindOf(invocation) === "plain") return;
      if (isScratch) await removeSessionDirectory(directories.scratch, invocation.session_id, directories.owner());
      if (directories.sessionHomes !== null)
        await removeSessionDirectory(directories.sessionHomes, invocation.session_id, directories.owner());
    },
  };
}

type Place = { ok: true; path: string } | { ok: false; reason: FailureReason; message: string };
type WorkPlace = { ok: true; path: string; lock?: DirectoryLock } | Exclude<Opened, { ok: true }>;

async function workOf(invocation: Invocation, options: OpenOptions): Promise<WorkPlace> {
  const { directories } = options;
  const kind = workspaceKindOf(invocation);
  if (kind === "scratch")
    return openSessionDirectory(invocation, {
      root: directories.scratch,
      owner: directories.owner(),
      what: "work directory",
      signal: options.signal,
      ...restoring(options.saved, (path, files) => restoreFiles(path, files)),
    });
  const { project_dir } = invocation;
  const work: Place =
    project_dir === null
      ? { ok: true, path: directories.projectDir }
      : await allowedDirectory(project_dir, directories);
  if (!work.ok || kind === "plain") return work;
  const path = await realpath(work.path);
  const lock = await lockDirectory(path, invocation.run_id, options.locks, options.signal, options.onWaiting);
  return lock ? { ok: true, path, lock } : { ok: false, reason: null };
}

/** A folder that is older than what was saved is made anew, and one that is not there if it can be. */
function restoring(
  saved: OpenOptions["saved"],
  into: (path: string, files: AsyncIterable<SessionFile>) => Promise<void>,
): Pick<SessionDirectoryOptions, "restore"> {
  if (!saved?.portable) return {};
  return { restore: { always: !saved.here, into: (path) => into(path, saved.files()) } };
}

async function homeOf(invocation: Invocation, { directories, signal, saved }: OpenOptions): Promise<SessionDirectory> {
  if (directories.sessionHomes === null) return { ok: true, path: directories.home };
  const folder = {
    root: directories.sessionHomes,
    owner: directories.owner(),
    what: "HOME",
    signal,
    ...restoring(saved, async () => {}),
  };
  return workspaceKindOf(invocation) === "plain"
    ? openSharedDirectory(invocation, folder)
    : openSessionDirectory(invocation, folder);
}

/** Made when somebody asks for it, which is when a process is started: a run that starts none needs none. */
function lazyDirectory(base: string, path: string): { path(): string; remove(): Promise<void> } {
  let made = false;
  return {
    path() {
      // each time: a process of the run may have put something else there
      makePrivateDirectory(base, path);
      made = true;
      return path;
    },
    async remove() {
      if (!made) return;
      removeNonDirectories(base, dirname(path));
      await removeTree(path);
    },
  };
}

/** Compared by what they really are, so that no link leads out. */
async function allowedDirectory(wanted: string, { projectDir, roots }: RunnerDirectories): Promise<Place> {
  const refused = (message: string): Place => ({ ok: false, reason: "refused", message });
  if (!isAbsolute(wanted)) return refused(`project_dir must be an absolute path, not ${JSON.stringify(wanted)}.`);
  const real = await realOf(wanted);
  if (real === null) return refused(`project_dir ${wanted} does not exist on this runner.`);
  if (!(await stat(real)).isDirectory()) return refused(`project_dir ${wanted} is not a directory.`);
  for (const root of [projectDir, ...roots]) {
    const realRoot = await realOf(root);
    if (realRoot !== null && isWithin(real, realRoot)) return { ok: true, path: real };
  }
  return refused(
    `project_dir ${wanted} is outside what this runner allows; its profile can add a folder to project_roots.`,
  );
}

async function realOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (
      error instanceof Error &&
      "code" in error &&
      ["ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG"].includes(String(error.code))
    )
      return null;
    throw error;
  }
}
