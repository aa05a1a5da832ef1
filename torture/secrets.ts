import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { schema } from "../src/record/postgres/connection.ts";
import { findCanaries, makeCanaries } from "../test/fixtures/e2e/canaries.ts";
import { listFilesBelow } from "../test/fixtures/e2e/left-over.ts";
import { drover } from "./drover-command.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { converseWithSecrets } from "./secret-conversations.ts";
import { countUpTo, waitFor } from "./wait.ts";

type Found = [location: string, bytes: Buffer];

/**
 * S6: runs print their runner's secrets in every encoding, whole and in pieces. None of them appears in the database, in
 * a file that Drover writes (including conversations and backups), in a response or stream, or in a process's arguments.
 * Neither does the fleet's own secret.
 */
export async function secrets(
  { canaries: count, runs }: { canaries: number; runs: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const canaries = makeCanaries(count);
    const names = canaries.map((_, index) => `SECRET_${index}_TOKEN`);
    const env = Object.fromEntries(canaries.map((canary, index) => [names[index]!, canary]));
    const script = join(testbed.directory, "scripts", "leak.mjs");
    writeFileSync(script, leakScript);
    await testbed.startRunner({ name: "leaky", slots: 2, env, profile: { env_from: names } });
    await testbed.client.agents.put("leak", { type: "procedural", command: `${process.execPath} ${script}` });
    const searched: Found[] = [];
    const failed: string[] = [];
    for (const index of countUpTo(runs)) {
      const { run_id } = await testbed.client.submit({ agent_name: "leak", parameters: { split: index % 2 === 1 } });
      const args = watchCommandLines("anybody's");
      const streamed: string[] = [];
      for await (const event of testbed.client.runs.follow(run_id)) {
        // While it prints, its runner keeps a log on disk.
        if (event.event.type === "output" && streamed.length < 5) searched.push(...readFiles(testbed));
        streamed.push(JSON.stringify(event));
      }
      searched.push([`the stream of ${run_id}`, Buffer.from(streamed.join("\n"))]);
      searched.push([args.whose, Buffer.from(args.stop())]);
      const run = await testbed.client.runs.get(run_id);
      if (run.status !== "completed") failed.push(`${run_id} is ${run.status} (${run.reason}): ${run.error}`);
      searched.push([`the run ${run_id}`, Buffer.from(JSON.stringify(run))]);
    }
    const concealed = await runWithSecretParameters(testbed, script, Math.max(10, Math.ceil(count / 10)), searched);
    failed.push(...concealed.failed);
    const thinking = await converseWithSecrets(testbed, { names, env, runs: Math.max(2, Math.ceil(runs / 4)) });
    for (const stream of thinking.streams) searched.push(["the stream of a conversation", Buffer.from(stream)]);
    searched.push(["/sessions", Buffer.from(JSON.stringify(await testbed.client.sessions.list({})))]);
    const backup = join(testbed.directory, "backup");
    const own = { DROVER_API_URL: testbed.url, DROVER_API_KEY: testbed.token };
    const created = await drover(
      { processes: testbed.processes, tools, cwd: testbed.directory },
      own,
      "backup",
      backup,
    );
    searched.push(["/executions", Buffer.from(JSON.stringify(await testbed.client.executions.list({ limit: 1000 })))]);
    searched.push(["/runners", Buffer.from(JSON.stringify(await testbed.client.runners.list()))]);
    searched.push(...readFiles(testbed), ...(await readRows(testbed)));
    const fleets = await searchFleetSecrets(testbed, searched);
    const found = [
      ...findCanaries(canaries, searched),
      // Secret parameters are legitimately arguments of the program that receives them.
      ...findCanaries(
        concealed.canaries,
        searched.filter(([where]) => !isWords(where)),
      ),
    ];
    const hasMark = searched.some(([, bytes]) => bytes.includes(`[redacted:${names.at(-1)}]`));
    return {
      seen: {
        canaries: count,
        "as parameters": concealed.canaries.length,
        runs,
        conversations: thinking.streams.length,
        "places searched": searched.length,
        found: found.length + fleets.length,
      },
      broken: [
        ...found.slice(0, 20),
        ...fleets,
        ...thinking.failed,
        ...failed,
        ...(created.code === 0 && existsSync(backup) ? [] : [`there is no backup: ${created.output}`]),
        ...(hasMark ? [] : ["nothing is there in place of what was taken out"]),
      ],
      late: [],
    };
  });
}

/** Passes canaries as parameters that the schema marks as secret. The run prints them. */
async function runWithSecretParameters(
  { client }: Testbed,
  script: string,
  count: number,
  searched: Found[],
): Promise<{ canaries: string[]; failed: string[] }> {
  const canaries = makeCanaries(count);
  const properties = Object.fromEntries(
    canaries.map((_, index) => [`p${index}`, { type: "string", format: "password" }]),
  );
  await client.agents.put("parameters", {
    type: "procedural",
    command: `${process.execPath} ${script} --from-parameters`,
    parameters_schema: { type: "object", properties },
  });
  const parameters = Object.fromEntries(canaries.map((canary, index) => [`p${index}`, canary]));
  const created = await client.submit({ agent_name: "parameters", parameters, idempotency_key: "parameters" });
  searched.push(["the answer to a submit", Buffer.from(JSON.stringify(created))]);
  const streamed: string[] = [];
  for await (const event of client.runs.follow(created.run_id)) streamed.push(JSON.stringify(event));
  searched.push(["the stream of a run with secret parameters", Buffer.from(streamed.join("\n"))]);
  const run = await client.runs.get(created.run_id);
  searched.push(["a run with secret parameters", Buffer.from(JSON.stringify(run))]);
  return {
    canaries,
    failed: run.status === "completed" ? [] : [`${run.run_id} is ${run.status} (${run.reason}): ${run.error}`],
  };
}

/** All files of the testbed except the script itself, and the output of Drover's processes. */
function readFiles({ directory, coordinators }: Testbed): Found[] {
  return [
    ...listFilesBelow(directory)
      .filter((file) => !file.endsWith("leak.mjs") && !lstatSync(file, { throwIfNoEntry: false })?.isSocket())
      .flatMap((file): Found[] => {
        try {
          return [[file, readFileSync(file)]];
        } catch (error) {
          if (existsSync(file)) throw error;
          return []; // Removed in the meantime.
        }
      }),
    ...coordinators.map(({ child }): Found => ["output of a coordinator", Buffer.from(child.output)]),
  ];
}

/** Every row of every table. Bytes are in hexadecimal, in which canaries are searched for too. */
async function readRows({ fleet }: Testbed): Promise<Found[]> {
  if (fleet === null) return [];
  const client = new pg.Client({ connectionString: fleet.url });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `select quote_ident(table_name) as name from information_schema.tables where table_schema = '${schema}'`,
    );
    const found: Found[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`select t::text as row from ${schema}.${name} t`);
      found.push([`the table ${name}`, Buffer.from(rows.map(({ row }) => row).join("\n"))]);
    }
    return found;
  } finally {
    await client.end();
  }
}

/** The fleet's own secrets must not appear in any file, row, response or process argument. */
async function searchFleetSecrets({ fleet, client }: Testbed, searched: readonly Found[]): Promise<string[]> {
  if (fleet === null) return [];
  const secret = fleet.secret.toString("hex");
  const args = watchCommandLines("our");
  await waitFor(async () => ((await client.health()).status === "ok" ? true : null), 60_000);
  // Other processes may be using the same server.
  const places = [
    ...searched.filter(([location]) => !isWords(location)),
    [args.whose, Buffer.from(args.stop())] as const,
  ];
  return [secret, fleet.secret.toString("base64"), new URL(fleet.url).password].flatMap((own) =>
    places.filter(([, bytes]) => bytes.includes(own)).map(([location]) => `a secret of the fleet is in ${location}`),
  );
}

/** Samples the command lines that `ps` would show, of all processes or of this process and its descendants. */
function watchCommandLines(owner: "anybody's" | "our"): { whose: string; stop(): string } {
  const seen = new Set<string>();
  const check = (): void => {
    for (const { pid, words: args } of processesNow()) if (owner === "anybody's" || isDescendant(pid)) seen.add(args);
  };
  const timer = setInterval(check, 50);
  check();
  return {
    whose: `the words of ${owner} processes`,
    stop() {
      check();
      clearInterval(timer);
      return [...seen].join("\n");
    },
  };
}

const isWords = (location: string): boolean => location.startsWith("the words of ");

function* processesNow(): Generator<{ pid: number; words: string }> {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const args = readProcessFile(pid, "cmdline");
    if (args !== null) yield { pid: Number(pid), words: args.replaceAll("\0", " ") };
  }
}

function isDescendant(pid: number): boolean {
  if (pid === process.pid) return true;
  const parent = Number(/^PPid:\s*(\d+)$/m.exec(readProcessFile(String(pid), "status") ?? "")?.[1] ?? 0);
  return parent > 0 && isDescendant(parent);
}

/** Returns null if the process has exited. */
function readProcessFile(pid: string, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH")) return null;
    throw error;
  }
}

/** Prints every secret of its environment in every encoding. With --split, in two writes, sometimes with a pause between. */
const leakScript = `
import { writeSync } from "node:fs";
const split = process.argv.includes("--split");
const encoded = (secret) => [
  secret,
  ...[0, 1, 2].map((shift) => Buffer.from("x".repeat(shift) + secret).toString("base64")),
  Buffer.from(secret).toString("hex"),
  Buffer.from(secret).toString("hex").toUpperCase(),
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
];
const fromParameters = process.argv.includes("--from-parameters");
const secrets = fromParameters
  ? process.argv.flatMap((word, index) => (/^--p\\d+$/.test(word) ? [[word, process.argv[index + 1]]] : []))
  : Object.entries(process.env).filter(([name]) => /^SECRET_\\d+_TOKEN$/.test(name));
if (secrets.length === 0) process.exit(3);
for (const [index, line] of secrets.flatMap(([, secret]) => encoded(secret)).entries()) {
  const fd = index % 3 === 0 ? 2 : 1;
  const cut = split ? 1 + ((index * 7) % (line.length - 1)) : 0;
  writeSync(fd, line.slice(0, cut));
  if (index % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  writeSync(fd, line.slice(cut) + "\\n");
}
`;
