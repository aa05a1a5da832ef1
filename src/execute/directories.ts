import { mkdirSync } from "node:fs";
import { mkdir, realpath, rm, rmdir, stat } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import type { Invocation, RunContext } from "../model/executor.ts";

export interface Places {
  /** The runner's own project_dir. */
  projectDir: string;
  /** Where else its operator lets runs work. */
  roots: readonly string[];
  home: string;
  /** Each session gets a HOME of its own in here; null: the operator's own. */
  sessionHomes: string | null;
  /** Of the runner: each run gets a folder of its own in it. */
  tmpRoot: string;
}

export type Opened = { ok: true; dirs: RunContext["dirs"]; remove(): Promise<void> } | { ok: false; message: string };

/** The directories of one run. A work directory outside what the operator allowed is refused. */
export async function openDirectories(
  name: string,
  { project_dir, session_id }: Invocation,
  places: Places,
): Promise<Opened> {
  const work = project_dir === null ? places.projectDir : await allowedDirectory(project_dir, places);
  if (typeof work !== "string") return { ok: false, message: work.message };
  const tmp = lazyDirectory(join(places.tmpRoot, name));
  const home = places.sessionHomes === null ? places.home : join(places.sessionHomes, session_id);
  if (places.sessionHomes !== null) await mkdir(home, { recursive: true, mode: 0o700 });
  return {
    ok: true,
    dirs: {
      work,
      home,
      get tmp() {
        return tmp.path();
      },
    },
    remove: tmp.remove,
  };
}

/** Made when somebody asks for it, which is when a process is started: a run that starts none needs none. */
function lazyDirectory(path: string): { path(): string; remove(): Promise<void> } {
  let made = false;
  return {
    path() {
      if (!made) mkdirSync(path, { recursive: true, mode: 0o700 });
      made = true;
      return path;
    },
    async remove() {
      if (made) await removeDirectory(path);
    },
  };
}

/** One call where it is empty, as it nearly always is. */
async function removeDirectory(path: string): Promise<void> {
  await rmdir(path).catch(() => rm(path, { recursive: true, force: true, maxRetries: 3 }));
}

/** Compared by what they really are, so that no link leads out. */
async function allowedDirectory(wanted: string, { projectDir, roots }: Places): Promise<string | { message: string }> {
  if (!isAbsolute(wanted)) return { message: `project_dir must be an absolute path, not ${JSON.stringify(wanted)}.` };
  const real = await realOf(wanted);
  if (real === null) return { message: `project_dir ${wanted} does not exist on this runner.` };
  if (!(await stat(real)).isDirectory()) return { message: `project_dir ${wanted} is not a directory.` };
  for (const root of [projectDir, ...roots]) {
    const realRoot = await realOf(root);
    if (realRoot !== null && (real === realRoot || real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)))
      return real;
  }
  return {
    message: `project_dir ${wanted} is outside what this runner allows; its profile can add a folder to project_roots.`,
  };
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
