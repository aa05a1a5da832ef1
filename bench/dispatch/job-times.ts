import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

/**
 * A socket to which the workers of both sides send "S id time" when a job starts and "F id time" when it finishes. The
 * worker takes the time from the machine's shared clock, so that the transfer is not measured.
 */
export interface JobTimes {
  /** Nanoseconds of process.hrtime. */
  started(id: string): Promise<bigint>;
  finished(id: string): Promise<bigint>;
  /** Resolves when `count` more jobs have started (or finished) since the call. */
  more(what: "S" | "F", count: number): Promise<void>;
  close(): void;
}

export async function listenForJobTimes(path: string): Promise<JobTimes> {
  const reportedTimes = new Map<string, bigint>();
  const waiting = new Map<string, (at: bigint) => void>();
  const counts = { S: 0, F: 0 };
  let counters: { what: "S" | "F"; upTo: number; resolve: () => void }[] = [];
  const server = createServer((socket) => {
    createInterface({ input: socket }).on("line", (line) => {
      const [what = "", id = "", at = "0"] = line.split(" ");
      const key = what + id;
      if (what === "S" || what === "F") counts[what]++;
      waiting.get(key)?.(BigInt(at));
      if (!waiting.delete(key)) reportedTimes.set(key, BigInt(at));
      const due = counters.filter((item) => counts[item.what] >= item.upTo);
      if (due.length === 0) return;
      counters = counters.filter((item) => !due.includes(item));
      for (const { resolve } of due) resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const at = (key: string): Promise<bigint> =>
    new Promise((resolve) => {
      const reported = reportedTimes.get(key);
      if (reported === undefined) waiting.set(key, resolve);
      else resolve(reported);
      reportedTimes.delete(key);
    });
  return {
    started: (id) => at(`S${id}`),
    finished: (id) => at(`F${id}`),
    more(what, count) {
      const upTo = counts[what] + count;
      reportedTimes.clear();
      return new Promise((resolve) => counters.push({ what, upTo, resolve }));
    },
    close: () => void server.close(),
  };
}

export function createJobReporter(path: string): (what: "S" | "F", id: string, at?: bigint) => void {
  const socket = connect(path);
  return (what, id, at = process.hrtime.bigint()) => void socket.write(`${what} ${id} ${at}\n`);
}
