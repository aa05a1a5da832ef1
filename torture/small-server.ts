import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase } from "../test/postgres/databases.ts";
import { createSmallDiskPrefix } from "./coordinators.ts";
import type { Tools } from "./finding.ts";
import type { Trouble } from "./outage.ts";
import { createProcesses } from "./processes.ts";

/** A PostgreSQL server on a small private disk. */
export interface SmallServer {
  /** Fills the disk. Afterwards frees the space and restarts the server, as an operator would. */
  fill: Trouble;
}

/** Requires root, which can both mount a disk and run the server as another user. */
export async function withSmallServer<T>(
  tools: Tools,
  work: (tools: Tools, server: SmallServer) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-disk-"));
  // The server runs as another user.
  chmodSync(directory, 0o755);
  const processes = createProcesses();
  const atExit = (): void => processes.killAll();
  process.once("exit", atExit);
  try {
    const home = join(tools.root, "test", "postgres");
    const args = [process.execPath, tools.host, "postgres", JSON.stringify({ home })];
    const child = processes.start([...createSmallDiskPrefix(directory, "400m", "755"), ...args], {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "", TMPDIR: directory },
    });
    const [, admin = ""] = await child.waitForOutput(/^serving (\S+)$/m, 60_000);
    const seen = `/proc/${child.pid}/root${directory}`;
    const fill: Trouble = async () => {
      fillUp(join(seen, "filler"));
      return async () => {
        rmSync(join(seen, "filler"));
        child.signal("SIGHUP");
        await child.waitForOutput(/^started again$/m, 120_000);
      };
    };
    const openDatabase: Tools["openDatabase"] = async () => ({
      url: await createDatabase(admin),
      drop: async () => undefined, // Removed with the server.
    });
    return await work({ ...tools, engine: "postgres", openDatabase }, { fill });
  } finally {
    process.off("exit", atExit);
    await processes.endAll();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Fills the disk to the last block. */
export function fillUp(filler: string): void {
  writeFileSync(filler, "");
  for (let size = 32 * 1024 * 1024; size >= 4096;) {
    try {
      writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      size /= 2;
    }
  }
  const { bavail, bsize } = statfsSync(filler);
  if (bavail * bsize >= 64 * 1024) throw new Error(`${filler} left ${bavail * bsize} bytes`);
}
