// node torture.cjs ROOT HOST EXEC_MANY [NAME...] [--scale X] [--fresh]
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import type { Finding, Tools } from "./finding.ts";
import { type Torture, tortures } from "./sizes.ts";

interface Kept extends Finding {
  scale: number;
  seconds: number;
  at: string;
}

const [root = "", host = "", execMany = "", ...words] = process.argv.slice(2);
const folder = join(tmpdir(), "drover-torture");
const file = join(folder, "results.json");

async function main(): Promise<number> {
  const asked = readWords(words);
  if (typeof asked === "string") return say(`${asked}\n`, 2);
  mkdirSync(folder, { recursive: true });
  for (const torture of asked.chosen) {
    if (!asked.fresh && readKept()[keyOf(torture, asked.scale)] !== undefined) {
      process.stderr.write(`${torture.name} was done before; --fresh does it again\n`);
      continue;
    }
    await runOne(torture, asked.scale);
  }
  const kept = readKept();
  const done = asked.chosen.flatMap((torture) => {
    const found = kept[keyOf(torture, asked.scale)];
    return found === undefined ? [] : [{ ...torture, ...found }];
  });
  process.stdout.write(table(done));
  return done.length === asked.chosen.length && done.every(({ broken, late }) => broken.length + late.length === 0)
    ? 0
    : 1;
}

async function runOne(torture: Torture, scale: number): Promise<void> {
  process.stderr.write(`${torture.name}: ${torture.promise}\n`);
  const since = performance.now();
  const tools: Tools = { root, host, execMany, progress: (text) => void process.stderr.write(`  ${text}\n`) };
  // one that could not be carried out is told as such, and the others go on
  const finding = await torture.run(scale, tools).catch((error: unknown): Finding => ({
    seen: {},
    late: [],
    broken: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  }));
  const kept: Kept = {
    ...finding,
    scale,
    seconds: Math.round((performance.now() - since) / 1000),
    at: new Date().toISOString(),
  };
  writeFileSync(file, JSON.stringify({ ...readKept(), [keyOf(torture, scale)]: kept }, null, 1));
  process.stderr.write(`  ${numbers(finding)} (${kept.seconds} s)\n`);
  for (const one of finding.broken.slice(0, 10)) process.stderr.write(`  BROKEN ${one.slice(0, 2000)}\n`);
  for (const one of finding.late.slice(0, 10)) process.stderr.write(`  LATE ${one.slice(0, 2000)}\n`);
}

function readWords(given: readonly string[]): { chosen: readonly Torture[]; scale: number; fresh: boolean } | string {
  const at = given.indexOf("--scale");
  const scale = at < 0 ? 1 : Number(given[at + 1]);
  if (!(scale > 0 && scale <= 10)) return "--scale takes a number above 0, at most 10.";
  const names = given.filter((word, index) => !word.startsWith("--") && (at < 0 || index !== at + 1));
  const unknown = names.filter((name) => !tortures.some((torture) => torture.name === name));
  if (unknown.length > 0)
    return `There is no torture ${unknown.join(", ")}; there are: ${tortures.map(({ name }) => name).join(", ")}.`;
  return {
    chosen: names.length === 0 ? tortures : tortures.filter(({ name }) => names.includes(name)),
    scale,
    fresh: given.includes("--fresh"),
  };
}

function readKept(): Record<string, Kept> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Record<string, Kept>; // our own file
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw error;
  }
}

function keyOf({ name }: Torture, scale: number): string {
  return `${name} x ${scale}`;
}

function numbers({ seen }: Finding): string {
  return Object.entries(seen)
    .map(([what, count]) => `${what} ${count.toLocaleString("en")}`)
    .join(", ");
}

function table(done: readonly (Torture & Kept)[]): string {
  const machine = `${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.versions.node}`;
  const rows = done.map(
    (one) =>
      `| ${one.name} | ${one.promise} | ${numbers(one)} | ${one.broken.length} | ${one.late.length} | ${one.seconds} |`,
  );
  return ["", machine, "", "| # | promise | seen | broken | late | s |", "|---|---|---|---|---|---|", ...rows, ""].join(
    "\n",
  );
}

function say(text: string, code: number): number {
  process.stderr.write(text);
  return code;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));
main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
