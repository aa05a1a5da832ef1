import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs the launchers of native/ directly, without src/process. */
export interface Implementation {
  name: string;
  command: readonly string[];
}

export const hostHasNamespaces = canRun("unshare", ["--user", "--map-root-user", "--pid", "--fork", "true"]);
const levels = hostHasNamespaces ? (["pid", "group"] as const) : (["group"] as const);

export interface Launch {
  /** Options of the launcher, such as -i and -m. -f is added. */
  options: readonly string[];
  /** PATH ARGV0 ARGS... */
  command: readonly string[];
  stdin?: "pipe" | "ignore";
  user?: number;
  environment?: Record<string, string>;
  /** A command that starts the launcher, such as `sh -c '... "$@"' sh`. */
  within?: readonly string[];
}

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
  /** The status lines. */
  lines: string[];
}

export interface Launched {
  child: ChildProcess;
  /** Resolves when the process has exited and its pipes are closed. */
  finished: Promise<Finished>;
}

/** The parsed S line. */
export function parseEnd({ lines }: Finished): {
  status: number;
  leftovers: number;
  userUs: number;
  systemUs: number;
  maxRssKb: number;
} {
  const fields = lines
    .find((line) => line.startsWith("S "))
    ?.split(" ")
    .slice(1)
    .map(Number);
  if (fields === undefined) throw new Error(`no S line in ${JSON.stringify(lines)}`);
  const [status = NaN, leftovers = NaN, userUs = NaN, systemUs = NaN, maxRssKb = NaN] = fields;
  return { status, leftovers, userUs, systemUs, maxRssKb };
}

/** The command of a `Launch` that runs this script. */
export function createShellCommand(script: string): string[] {
  return ["/bin/sh", "sh", "-c", script, "sh"];
}

const root = join(import.meta.dirname, "..");
const nativeDirectory = join(root, "native");

/** Creates a world-readable directory with the launchers and the escapes. */
export function prepareStage() {
  const directory = mkdtempSync(join(tmpdir(), "drover-native-"));
  chmodSync(directory, 0o755);
  cpSync(join(nativeDirectory, "bin"), join(directory, "bin"), { recursive: true });
  cpSync(join(nativeDirectory, "init.pl"), join(directory, "init.pl"));
  cpSync(join(root, "test/fixtures/escape"), join(directory, "escape"), { recursive: true });
  let launches = 0;

  function launch(
    implementation: Implementation,
    { options, command, stdin = "ignore", user, environment, within = [] }: Launch,
  ): Launched {
    const statusFile = join(directory, `status-${launches++}`);
    const status = openSync(statusFile, "wx+", 0o600);
    const [program = "", ...args] = [...within, ...implementation.command, "-f", "3", ...options, "--", ...command];
    const child = spawn(program, args, {
      stdio: [stdin, "pipe", "pipe", status],
      cwd: "/",
      ...(user === undefined ? {} : { uid: user, gid: user }),
      ...(environment === undefined ? {} : { env: environment }),
    });
    closeSync(status);
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
    // As in the product, a failed read ends the stream, keeps earlier output, and records the error.
    for (const stream of [child.stdout, child.stderr])
      stream?.on("error", (fault) => stderr.push(Buffer.from(`[${fault.message}]`)));
    // A command may exit without reading its input.
    child.stdin?.on("error", () => undefined);
    const finished = new Promise<Finished>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => {
        const lines = readFileSync(statusFile, "utf8").split("\n").filter(Boolean);
        resolve({ code, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString(), lines });
      });
    });
    return { child, finished };
  }

  const implementations = findImplementations(directory);
  return {
    directory,
    launch,
    run: (implementation: Implementation, how: Launch) => launch(implementation, how).finished,
    implementations,
    combinations: implementations.flatMap((implementation) =>
      levels.map((level) => ({ implementation, level, name: `${implementation.name}, ${level}` })),
    ),
    foreign: findForeignImplementation(directory),
    escape: (name: string, mark: string, how: "stay" | "leave" = "stay") => [
      "/bin/sh",
      "sh",
      join(directory, "escape", `${name}.sh`),
      mark,
      how,
    ],
    remove: () => rmSync(directory, { recursive: true }),
  };
}

export const escapes = [
  "background",
  "setsid",
  "double-fork",
  "pid-hopping",
  "nohup",
  "ignored-term",
  "held-stdout",
  "cleared-env",
] as const;

/** The launchers that this machine can run. */
function findImplementations(directory: string): Implementation[] {
  const found: Implementation[] = [];
  if (process.platform !== "linux") return found;
  const binary = join(directory, "bin", `drover-init-linux-${process.arch}`);
  if (existsSync(binary)) found.push({ name: "static", command: [binary] });
  if (canRun("perl", ["-e", "1"])) found.push({ name: "perl", command: ["perl", join(directory, "init.pl")] });
  return found;
}

/** The other architecture's binary under emulation, which supports neither namespaces nor reapers. */
function findForeignImplementation(directory: string): Implementation[] {
  if (process.arch !== "x64" || !canRun("qemu-aarch64-static", ["--version"])) return [];
  return [
    { name: "arm64, emulated", command: ["qemu-aarch64-static", join(directory, "bin/drover-init-linux-arm64")] },
  ];
}

function canRun(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/** A unique number of seconds to sleep, by which survivors are found. */
export function createMark(): string {
  return `3600.${String(Math.floor(Math.random() * 1e12)).padStart(12, "0")}`;
}

/** The pids of live processes with this mark among their arguments. */
export function findMarked(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && readArguments(name).includes(mark))
    .map(Number);
}

function readArguments(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch (error) {
    // It exited between the two reads.
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH")) return [];
    throw error;
  }
}

export async function waitUntil(what: string, condition: () => boolean, milliseconds = 120_000): Promise<void> {
  const deadline = Date.now() + milliseconds;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`timed out after ${milliseconds} ms waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Resolves once stdout contains the word. */
export async function waitForOutput({ child }: Launched, word: string): Promise<void> {
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await waitUntil(`the command says ${word}`, () => text.includes(word));
}
