import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach } from "vitest";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const bin = join(root, "bin", "drover.js");

/** An ordinary user, for tests that run as root. */
export const nobodyUid = 65534;
export const isRoot = process.getuid?.() === 0;

export interface CommandResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  /** The bytes of `stdout`. */
  stdoutBytes: Buffer;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  uid?: number;
  /** Words before the command, for example to run it on a host that lacks something. */
  commandPrefix?: string[];
  signal?: AbortSignal;
  onSpawn?: (pid: number) => void;
}

/** The value of DROVER_TRUST, so that directories created by tests are trusted. */
export const trusted = tmpdir();

/** Runs the command line in its own process with its own environment. */
export function drover(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
  const [file, ...words] = [...(options.commandPrefix ?? []), process.execPath, bin, ...args];
  const child = spawn(file!, words, {
    cwd: options.cwd ?? tmpdir(),
    env: { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_TRUST: trusted, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  if (child.pid !== undefined) options.onSpawn?.(child.pid);
  // A command may exit without reading all of its input.
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

/** A fixture is removed at the end of the test or of the test file. */
export type Lifetime = "test" | "file";

const directories: Record<Lifetime, string[]> = { test: [], file: [] };
const removeDirectories = (lifetime: Lifetime): void => {
  for (const path of directories[lifetime].splice(0)) rmSync(path, { recursive: true, force: true });
};
afterEach(() => removeDirectories("test"));
afterAll(() => removeDirectories("file"));

/** Creates a directory and removes it at the end of its lifetime. It belongs to `uid` if given. */
export function createDirectory(uid?: number, lifetime: Lifetime = "test"): string {
  const path = mkdtempSync(join(tmpdir(), "drover-test-"));
  directories[lifetime].push(path);
  if (uid !== undefined) {
    chownSync(path, uid, uid);
    chmodSync(path, 0o755);
  }
  return path;
}

let home: string | null = null;

/** Returns the HOME of every Drover process in this test file, writable by any user. Other test files do not see it. */
export function getTestHome(): string {
  if (home === null || !existsSync(home)) {
    home = createDirectory(undefined, "file");
    chmodSync(home, 0o777);
  }
  return home;
}

/** Returns the words that run a command as on a host without namespaces, or null if this host cannot do that. */
export function withoutNamespaces(): string[] | null {
  const forbid = 'echo 0 >/proc/sys/user/max_pid_namespaces && echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"';
  const prefix = ["unshare", "-Ur", "sh", "-c", forbid, "sh"];
  const probe = spawnSync(prefix[0]!, [...prefix.slice(1), "sh", "-c", "! unshare -p -f true 2>/dev/null"]);
  return probe.status === 0 ? prefix : null;
}

export function exists(path: string): boolean {
  return existsSync(path);
}
