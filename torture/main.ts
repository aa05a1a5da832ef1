// node torture.cjs ROOT HOST EXEC_MANY [NAME...] [--engine E] [--scale X] [--fresh]
import { getPriority, setPriority } from "node:os";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import type { PostgresServer } from "../test/postgres/server.ts";
import type { EngineName, Finding, Tools } from "./finding.ts";
import { createDatabaseOn, startServer } from "./own-server.ts";
import { tortures } from "./sizes.ts";
import type { Torture } from "./torture.ts";

interface SavedResult extends Finding {
  scale: number;
  seconds: number;
  at: string;
}

interface Row {
  torture: Torture;
  engine: EngineName;
}

interface TortureRequest {
  rows: readonly Row[];
  scale: number;
  fresh: boolean;
}

const [root = "", host = "", execMany = "", ...args] = process.argv.slice(2);
const directory = join(tmpdir(), "drover-torture");
const file = join(directory, "results.json");

/** Shared by all rows that only need a database. Started on first use. */
let server: Promise<PostgresServer> | null = null;
const openDatabase: Tools["openDatabase"] = async () => createDatabaseOn(await (server ??= startServer(root)));

async function main(): Promise<number> {
  const request = readWords(args);
  if (typeof request === "string") return print(`${request}\n`, 2);
  mkdirSync(directory, { recursive: true });
  for (const row of request.rows) {
    if (!request.fresh && readSaved()[getResultKey(row, request.scale)] !== undefined) {
      process.stderr.write(`${getRowName(row)} is already done; --fresh runs it again\n`);
      continue;
    }
    await runRow(row, request.scale);
  }
  if (server !== null) await (await server).stop();
  const saved = readSaved();
  const done = request.rows.flatMap((row) => {
    const found = saved[getResultKey(row, request.scale)];
    return found === undefined ? [] : [{ ...row, ...found }];
  });
  process.stdout.write(formatTable(done));
  return done.length === request.rows.length && done.every(({ broken, late }) => broken.length + late.length === 0)
    ? 0
    : 1;
}

async function runRow(row: Row, scale: number): Promise<void> {
  process.stderr.write(`${getRowName(row)}: ${row.torture.promise}\n`);
  const startedAt = performance.now();
  const progress = (text: string): void => void process.stderr.write(`  ${text}\n`);
  // Only root can raise its priority again after the row.
  const isRoot = process.getuid?.() === 0;
  const priority = getPriority();
  const tools: Tools = {
    root,
    host,
    execMany,
    engine: row.engine,
    openDatabase,
    progress,
    ...(isRoot ? { lowersPriority: true } : {}),
  };
  // A row that throws is reported as broken, and the others still run.
  const finding = await row.torture.run(scale, tools).catch((error: unknown): Finding => ({
    seen: {},
    late: [],
    broken: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
  }));
  if (isRoot) setPriority(priority);
  const saved: SavedResult = {
    ...finding,
    scale,
    seconds: Math.round((performance.now() - startedAt) / 1000),
    at: new Date().toISOString(),
  };
  writeFileSync(file, JSON.stringify({ ...readSaved(), [getResultKey(row, scale)]: saved }, null, 1));
  process.stderr.write(`  ${formatNumbers(finding)} (${saved.seconds} s)\n`);
  for (const item of finding.broken.slice(0, 10)) process.stderr.write(`  BROKEN ${item.slice(0, 2000)}\n`);
  for (const item of finding.late.slice(0, 10)) process.stderr.write(`  LATE ${item.slice(0, 2000)}\n`);
}

const engines = ["sqlite", "postgres"] as const;

function readWords(given: readonly string[]): TortureRequest | string {
  const valueOf = (option: string): string | undefined =>
    given.includes(option) ? (given[given.indexOf(option) + 1] ?? "") : undefined;
  const scale = Number(valueOf("--scale") ?? 1);
  if (!(scale > 0 && scale <= 10)) return "--scale takes a number above 0, at most 10.";
  const engine = valueOf("--engine");
  if (engine !== undefined && !engines.some((item) => item === engine))
    return `--engine takes ${engines.join(" or ")}.`;
  const names = given.filter(
    (word, index) => !word.startsWith("--") && given[index - 1] !== "--scale" && given[index - 1] !== "--engine",
  );
  const unknown = names.filter((name) => !tortures.some((torture) => torture.name === name));
  if (unknown.length > 0)
    return `Unknown torture ${unknown.join(", ")}. Known: ${tortures.map(({ name }) => name).join(", ")}.`;
  const chosen = tortures.filter(({ name }) => names.length === 0 || names.includes(name));
  return {
    rows: engines
      .filter((item) => engine === undefined || item === engine)
      .flatMap((item) =>
        chosen.filter((torture) => torture.engines.includes(item)).map((torture) => ({ torture, engine: item })),
      ),
    scale,
    fresh: given.includes("--fresh"),
  };
}

function readSaved(): Record<string, SavedResult> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Record<string, SavedResult>; // Written below.
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw error;
  }
}

function getRowName({ torture, engine }: Row): string {
  return `${torture.name} on ${engine}`;
}

function getResultKey(row: Row, scale: number): string {
  return `${getRowName(row)} x ${scale}`;
}

function formatNumbers({ seen }: Finding): string {
  return Object.entries(seen)
    .map(([what, count]) => `${what} ${count.toLocaleString("en")}`)
    .join(", ");
}

function formatTable(done: readonly (Row & SavedResult)[]): string {
  const machine = `${cpus().length} cores (${cpus()[0]?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, Linux ${release()}, Node ${process.versions.node}`;
  const rows = done.map(
    ({ torture, engine, ...saved }) =>
      `| ${torture.name} | ${engine} | ${torture.promise} | ${formatNumbers(saved)} | ${saved.broken.length} | ${saved.late.length} | ${saved.seconds} |`,
  );
  const head = ["| # | engine | promise | seen | broken | late | s |", "|---|---|---|---|---|---|---|"];
  return ["", machine, "", ...head, ...rows, ""].join("\n");
}

function print(text: string, code: number): number {
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
