// node guard-process.mjs [UID GID], with an IPC channel to the process that needs a PostgreSQL server.
// Only this process creates the data directory and runs initdb and the server. However the other process ends, even by
// SIGKILL, the channel closes and this process removes everything: processes, directory and shared memory.
import { spawn, spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const [uid, gid] = process.argv.slice(2).map(Number);
const user = uid === undefined ? {} : { uid, gid };
const directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-postgres-")));
if (uid !== undefined) chownSync(directory, uid, gid);
const log = openSync(join(directory, "log"), "a");

/** The running program, and a promise that resolves once it has exited. */
let child = null;
let ended = Promise.resolve();
let ending = false;

process.on("message", ({ run, signal }) => {
  if (ending) return;
  if (run) start(run);
  else child?.kill(signal);
});
for (const event of ["disconnect", "SIGTERM", "SIGINT", "SIGHUP"]) process.on(event, () => void end());
send({ directory });

function start([program, ...args]) {
  // The user's PG* variables would change what the programs do, and another locale would change what they print.
  const env = { PATH: process.env.PATH, LC_ALL: "C" };
  const started = spawn(program, args, { cwd: directory, env, stdio: ["ignore", log, log], ...user });
  child = started;
  ended = new Promise((resolve) => {
    started.once("error", (error) => resolve(error.message));
    started.once("exit", (code, signal) => resolve(signal ?? `exit ${code}`));
  }).then(async (how) => {
    child = null;
    await killLeftovers();
    send({ ended: how });
  });
  if (started.pid !== undefined) send({ started: started.pid });
}

function send(what) {
  // The other process may be gone already; `disconnect` reports that too.
  if (process.connected) process.send(what, () => undefined);
}

async function end() {
  if (ending) return;
  ending = true;
  // The data are thrown away, so an immediate shutdown will do. The server may also have been suspended.
  child?.kill("SIGQUIT");
  child?.kill("SIGCONT");
  if (!(await Promise.race([ended.then(() => true), pause(20_000, false)]))) {
    child?.kill("SIGKILL");
    await ended;
  }
  freeSharedMemory();
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  process.exit(0);
}

/**
 * A killed server leaves its sessions running, and a killed initdb leaves its server running. They end and clean up on
 * their own, except for a busy session, which does not notice. All of them have their working directory in our directory.
 */
async function killLeftovers() {
  if (!existsSync("/proc/self/cwd")) return; // Not Linux: a busy session ends when its statement does.
  const deadline = performance.now() + 1000;
  for (let left = findLeftovers(); left.length > 0; left = findLeftovers()) {
    if (performance.now() > deadline) left.forEach(kill);
    await pause(10);
  }
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // It has already ended.
  }
}

function findLeftovers() {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && `${readWorkingDirectory(name)}/`.startsWith(`${directory}/`))
    .map(Number);
}

function readWorkingDirectory(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ""; // Ended, or owned by somebody else.
  }
}

/**
 * Frees the shared memory of a killed server. A server that exits normally frees it itself and removes postmaster.pid
 * last, so the file exists only after a kill.
 */
function freeSharedMemory() {
  const lock = join(directory, "data", "postmaster.pid");
  if (!existsSync(lock)) return;
  const id = readFileSync(lock, "utf8").split("\n")[6]?.trim().split(/\s+/)[1];
  if (id === undefined) return;
  const { status, error, stderr } = spawnSync("ipcrm", ["-m", id], { encoding: "utf8" });
  if (status !== 0)
    process.stderr.write(`Shared memory ${id} of PostgreSQL could not be freed: ${error?.message ?? stderr}\n`);
}
