import { cpus, loadavg, release } from "node:os";

/** DROVER_BENCH=submit,rate measures only these parts. */
export function isRequested(part: string): boolean {
  const requested = process.env["DROVER_BENCH"]?.split(",");
  return requested === undefined || requested.includes(part);
}

/** DROVER_BENCH_ROUNDS sets fewer rounds for a quick look. Published figures use at least the default. */
export function chooseRounds(defaultRounds: number): number {
  return Number(process.env["DROVER_BENCH_ROUNDS"] ?? defaultRounds);
}

export const describeLoad = (): string =>
  loadavg()
    .map((load) => load.toFixed(1))
    .join(" ");

export const describeMachine = (): string =>
  `Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model}, load ${describeLoad()}`;

/** Runs the bench itself, or the role of one of its processes (see startRole). */
export function runBench(main: () => Promise<void>, roles: Record<string, (options: never) => Promise<void>>): void {
  const [, , , role, roleOptions = "{}"] = process.argv;
  // startRole passes options that match the role.
  const work = role === undefined ? main() : roles[role]!(JSON.parse(roleOptions) as never);
  work.then(
    // A peer's client may have left something open.
    () => (role === undefined ? process.exit(0) : undefined),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
}
