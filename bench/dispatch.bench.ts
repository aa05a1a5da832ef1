import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, release, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Bull, bullWorker, openBull } from "./dispatch/bull.ts";
import { type Drover, startDrover } from "./dispatch/drover.ts";
import { growth } from "./dispatch/growth.ts";
import { idleMemory } from "./dispatch/memory.ts";
import { noDatabaseRole, postRuns } from "./dispatch/post-runs.ts";
import { type Redis, startRedis } from "./dispatch/redis.ts";
import { sse } from "./dispatch/sse.ts";
import { oneWritePerEventRole, sseReadersRole } from "./dispatch/sse-roles.ts";
import { stopToDead } from "./dispatch/stop-to-dead.ts";
import { submitToStart } from "./dispatch/submit-to-start.ts";
import { listenForTold } from "./dispatch/tell.ts";
import { throughput } from "./dispatch/throughput.ts";

const [, , benchFolder = "", role, roleOptions = "{}"] = process.argv;
const root = dirname(benchFolder);
const rounds = 5;
/** DROVER_BENCH=submit,sse measures these alone. */
const wanted = process.env["DROVER_BENCH"]?.split(",");
const wants = (part: string): boolean => wanted === undefined || wanted.includes(part);

async function main(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "drover-bench-"));
  const toldPath = join(place, "told.sock");
  const told = await listenForTold(toldPath);
  let drover: Drover | null = null;
  let redis: Redis | null = null;
  let bull: Bull | null = null;
  try {
    redis = await startRedis(join(place, "redis"));
    bull = redis && (await openBull(benchFolder, redis.port, toldPath));
    process.stdout.write(
      `Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load ${loadavg()
        .map((load) => load.toFixed(1))
        .join(" ")}\n`,
    );
    if (redis && bull)
      process.stdout.write(
        `SQLite synchronous=FULL; BullMQ ${bull.version} on Redis ${redis.version} with appendfsync always\n`,
      );
    else
      process.stdout.write(
        "BullMQ is left out: there is no redis-server here (Debian: apt-get install redis-server; macOS: brew install redis)\n",
      );
    drover = await startDrover(root, place, toldPath);
    const sides = { drover, bull, told, redisPid: redis?.pid ?? 0 };
    if (wants("memory")) await idleMemory(drover);
    if (wants("submit")) await submitToStart(sides, rounds, 120);
    if (wants("rate")) await throughput(sides, rounds, 2000);
    if (wants("stop")) await stopToDead(drover, place, rounds);
    await drover.stop();
    await bull?.close();
    await redis?.stop();
    if (wants("post")) await postRuns(root, place, rounds, 8000);
    if (wants("sse")) await sse(root, place, told, toldPath, rounds);
    if (wants("growth")) await growth(place, rounds, 400);
    process.stdout.write(
      `\nLoad at the end: ${loadavg()
        .map((load) => load.toFixed(1))
        .join(" ")}\n`,
    );
  } finally {
    await drover?.stop();
    await redis?.stop();
    told.close();
    rmSync(place, { recursive: true, force: true });
  }
  process.exit(0);
}

const roles: Record<string, (options: never) => Promise<void>> = {
  "bull-worker": (options) => bullWorker(benchFolder, options),
  "no-database": noDatabaseRole,
  "one-write-per-event": oneWritePerEventRole,
  "sse-readers": sseReadersRole,
};

// the options are what startRole was given, made for this very role
(role === undefined ? main() : roles[role]!(JSON.parse(roleOptions) as never)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
