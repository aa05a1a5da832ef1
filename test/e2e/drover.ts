import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const bin = join(root, "bin", "drover.js");

/** An ordinary user, for tests that are run by root. */
export const nobody = 65534;
export const isRoot = process.getuid?.() === 0;

export interface Ran {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  /** The same, byte for byte. */
  stdoutBytes: Buffer;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  uid?: number;
  /** Words before the command, e.g. to run it on a host that lacks something. */
  through?: string[];
  signal?: AbortSignal;
  onSpawn?: (pid: number) => void;
}

/** For DROVER_TRUST: the folders that tests make count as their user's own. */
export const trusted = tmpdir();

/** The real command line in a process of its own, with an environment of its own. */
export function drover(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const [file, ...words] = [...(options.through ?? []), process.execPath, bin, ...args];
  const child = spawn(file!, words, {
    cwd: options.cwd ?? tmpdir(),
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  if (child.pid !== undefined) options.onSpawn?.(child.pid);
  // a command may end without reading all of its input
  child.stdin.on("error", () => undefined).end(options.input ?? "");
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      resolve({
        code,
        signal,
        stdout: Buffer.concat(out).toString("utf8"),
        stdoutBytes: Buffer.concat(out),
        stderr: Buffer.concat(err).toString("utf8"),
      });
    });
  });
}

/** How long a fixture lives: until the end of the test, or of its file. */
export type Lifetime = "test" | "file";

const made: Record<Lifetime, string[]> = { test: [], file: [] };
const removeFolders = (lifetime: Lifetime): void => {
  for (const path of made[lifetime].splice(0)) rmSync(path, { recursive: true, force: true });
};
afterEach(() => removeFolders("test"));
afterAll(() => removeFolders("file"));

/** A fresh folder, removed at the end of its lifetime; `uid` may write it. */
export function folder(uid?: number, lifetime: Lifetime = "test"): string {
  const path = mkdtempSync(join(tmpdir(), "drover-test-"));
  made[lifetime].push(path);
  if (uid !== undefined) {
    chownSync(path, uid, uid);
    chmodSync(path, 0o755);
  }
  return path;
}

let home: string | null = null;

/** The HOME of every Drover of a test file, for any user: what a file leaves there, no other finds. */
export function homeFolder(): string {
  if (home === null || !existsSync(home)) {
    home = folder(undefined, "file");
    chmodSync(home, 0o777);
  }
  return home;
}

/** The words that make a host without namespaces, or null where this one cannot be made into such. */
export function withoutNamespaces(): string[] | null {
  const forbid = 'echo 0 >/proc/sys/user/max_pid_namespaces && echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"';
  const words = ["unshare", "-Ur", "sh", "-c", forbid, "sh"];
  const probe = spawnSync(words[0]!, [...words.slice(1), "sh", "-c", "! unshare -p -f true 2>/dev/null"]);
  return probe.status === 0 ? words : null;
}

export function exists(path: string): boolean {
  return existsSync(path);
}
