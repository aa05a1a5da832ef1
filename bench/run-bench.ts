import { cpus, loadavg, release } from "node:os";

/** DROVER_BENCH=submit,rate measures these parts alone. */
export function wants(part: string): boolean {
  const wanted = process.env["DROVER_BENCH"]?.split(",");
  return wanted === undefined || wanted.includes(part);
}

/** DROVER_BENCH_ROUNDS: fewer for a first look; what is published has at least as many as given here. */
export function roundsOf(usual: number): number {
  return Number(process.env["DROVER_BENCH_ROUNDS"] ?? usual);
}

export const loadNow = (): string =>
  loadavg()
    .map((load) => load.toFixed(1))
    .join(" ");

export const machine = (): string =>
  `Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load ${loadNow()}`;

/** The bench itself, or the part of one of its processes, see startRole. */
export function runBench(main: () => Promise<void>, roles: Record<string, (options: never) => Promise<void>>): void {
  const [, , , role, roleOptions = "{}"] = process.argv;
  // the options are what startRole was given, made for this very role
  const work = role === undefined ? main() : roles[role]!(JSON.parse(roleOptions) as never);
  work.then(
    // whatever a peer's client left open
    () => (role === undefined ? process.exit(0) : undefined),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
}
