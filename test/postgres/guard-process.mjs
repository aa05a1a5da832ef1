// node guard-process.mjs [UID GID], with an IPC channel to whoever needs a PostgreSQL server.
// It alone makes the folder and runs the programs, so that however the other side ends, SIGKILL included, the channel
// closes and nothing stays behind: no process, no folder, no shared memory.
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
const folder = realpathSync(mkdtempSync(join(tmpdir(), "drover-postgres-")));
if (uid !== undefined) chownSync(folder, uid, gid);
const log = openSync(join(folder, "log"), "a");

/** The program that runs, and when it does not any more. */
let child = null;
let ended = Promise.resolve();
let ending = false;

process.on("message", ({ run, signal }) => {
  if (ending) return;
  if (run) start(run);
  else child?.kill(signal);
});
for (const event of ["disconnect", "SIGTERM", "SIGINT", "SIGHUP"]) process.on(event, () => void end());
tell({ folder });

function start([program, ...words]) {
  // PG... variables of the user would change what the programs do, other languages what they say
  const env = { PATH: process.env.PATH, LC_ALL: "C" };
  const started = spawn(program, words, { cwd: folder, env, stdio: ["ignore", log, log], ...user });
  child = started;
  ended = new Promise((resolve) => {
    started.once("error", (error) => resolve(error.message));
    started.once("exit", (code, signal) => resolve(signal ?? `exit ${code}`));
  }).then(async (how) => {
    child = null;
    await endLeftProcesses();
    tell({ ended: how });
  });
  if (started.pid !== undefined) tell({ started: started.pid });
}

function tell(what) {
  // the other side may be gone already, which `disconnect` tells as well
  if (process.connected) process.send(what, () => undefined);
}

async function end() {
  if (ending) return;
  ending = true;
  // its data are thrown away: it need not write them first. It may also have been stopped.
  child?.kill("SIGQUIT");
  child?.kill("SIGCONT");
  if (!(await Promise.race([ended.then(() => true), pause(20_000, false)]))) {
    child?.kill("SIGKILL");
    await ended;
  }
  freeSharedMemory();
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  process.exit(0);
}

/**
 * A server that was killed leaves its sessions behind, and initdb its server. They end by themselves, and clean up, but
 * for a busy session, which does not notice. All of them work in the folder.
 */
async function endLeftProcesses() {
  if (!existsSync("/proc/self/cwd")) return; // not Linux: that session ends with its statement
  const patience = performance.now() + 1000;
  for (let left = leftProcesses(); left.length > 0; left = leftProcesses()) {
    if (performance.now() > patience) left.forEach(kill);
    await pause(10);
  }
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // ended meanwhile
  }
}

function leftProcesses() {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && `${workingDirectory(name)}/`.startsWith(`${folder}/`))
    .map(Number);
}

function workingDirectory(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ""; // ended, or somebody else's
  }
}

/** What a server removes when it ends, unless it was killed. The file goes last, so that its being there says so. */
function freeSharedMemory() {
  const lock = join(folder, "data", "postmaster.pid");
  if (!existsSync(lock)) return;
  const id = readFileSync(lock, "utf8").split("\n")[6]?.trim().split(/\s+/)[1];
  if (id === undefined) return;
  const { status, error, stderr } = spawnSync("ipcrm", ["-m", id], { encoding: "utf8" });
  if (status !== 0) process.stderr.write(`Shared memory ${id} of PostgreSQL stays: ${error?.message ?? stderr}\n`);
}
