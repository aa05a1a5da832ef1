import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

/**
 * Where workers of both sides say "S id time" when a job begins and "F id time" when it is over. Times are
 * taken by whoever tells, from the clock all processes of a machine share: the way here is not measured.
 */
export interface Told {
  /** In nanoseconds of process.hrtime. */
  started(id: string): Promise<bigint>;
  finished(id: string): Promise<bigint>;
  /** Resolves when so many more have begun (or ended) than when it was called. */
  more(what: "S" | "F", count: number): Promise<void>;
  close(): void;
}

export async function listenForTold(path: string): Promise<Told> {
  const seen = new Map<string, bigint>();
  const waiting = new Map<string, (at: bigint) => void>();
  const counts = { S: 0, F: 0 };
  let counters: { what: "S" | "F"; upTo: number; resolve: () => void }[] = [];
  const server = createServer((socket) => {
    createInterface({ input: socket }).on("line", (line) => {
      const [what = "", id = "", at = "0"] = line.split(" ");
      const key = what + id;
      if (what === "S" || what === "F") counts[what]++;
      waiting.get(key)?.(BigInt(at));
      if (!waiting.delete(key)) seen.set(key, BigInt(at));
      const due = counters.filter((one) => counts[one.what] >= one.upTo);
      if (due.length === 0) return;
      counters = counters.filter((one) => !due.includes(one));
      for (const { resolve } of due) resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const at = (key: string): Promise<bigint> =>
    new Promise((resolve) => {
      const known = seen.get(key);
      if (known === undefined) waiting.set(key, resolve);
      else resolve(known);
      seen.delete(key);
    });
  return {
    started: (id) => at(`S${id}`),
    finished: (id) => at(`F${id}`),
    more(what, count) {
      const upTo = counts[what] + count;
      seen.clear();
      return new Promise((resolve) => counters.push({ what, upTo, resolve }));
    },
    close: () => void server.close(),
  };
}

export function teller(path: string): (what: "S" | "F", id: string, at?: bigint) => void {
  const socket = connect(path);
  return (what, id, at = process.hrtime.bigint()) => void socket.write(`${what} ${id} ${at}\n`);
}
