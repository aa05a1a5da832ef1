import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding, Tools } from "./finding.ts";

interface Exported {
  executionId: string;
  success: boolean;
  interrupted: boolean;
  state: string;
}

const writers = 8;
/** Commands in progress per writer. */
const atOnce = 4;

/** R8 without a coordinator: eight processes write one record and some are killed. Everything that ran is on record, and the chain verifies. */
export async function manyWriters(
  { executions, kills }: { executions: number; kills: number },
  tools: Tools,
): Promise<Finding> {
  const directory = mkdtempSync(join(tmpdir(), "drover-torture-"));
  const state = join(directory, "state");
  const marks = join(directory, "marks");
  mkdirSync(marks);
  try {
    const { acknowledged, killed, errors } = await writeMany(tools.execMany, state, marks, executions, kills);
    const drover = (...args: string[]) =>
      runProgram([process.execPath, join(tools.root, "bin", "drover.js"), ...args], directory, state);
    // The next command writes the ends that killed processes could not.
    await drover("runs", "list", "--limit", "1");
    const verified = await drover("audit", "verify");
    const lines = (await drover("audit", "export")).stdout.trim().split("\n");
    // Our own export.
    const exported = lines.map((line) => JSON.parse(line) as Exported);
    const recorded = new Set(exported.map(({ executionId }) => executionId));
    const happened = new Set(readdirSync(marks));
    const missing = [...happened].filter((id) => !recorded.has(id));
    const ended = exported.filter(({ success }) => success);
    const interrupted = exported.filter((record) => record.interrupted).length;
    const invented = ended.filter(({ executionId }) => !happened.has(executionId)).length;
    const open = exported.filter((record) => record.state === "running").length;
    return {
      seen: { acknowledged, killed, "off the record": missing.length, "without an end": open, invented, interrupted },
      broken: [
        ...errors,
        ...(verified.code === 0 ? [] : [`audit verify: ${verified.stdout}${verified.stderr}`]),
        ...missing.slice(0, 10).map((id) => `${id} ran and is not on the record`),
        ...(ended.length >= acknowledged
          ? []
          : [`${acknowledged} were acknowledged, ${ended.length} are on the record`]),
        ...(invented + open === 0 ? [] : [`${invented} on the record never ran, ${open} have no end`]),
        ...(interrupted <= killed * atOnce ? [] : [`${interrupted} interrupted by ${killed} kills`]),
      ],
      late: [],
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Writes until `wanted` commands are acknowledged. Now and then kills and replaces a process. */
async function writeMany(script: string, state: string, marks: string, requested: number, kills: number) {
  const share = Math.ceil(requested / writers);
  const found = { acknowledged: 0, killed: 0, errors: [] as string[] };
  let killsLeft = kills;
  const runOneProcess = (): Promise<void> => {
    const child = spawn(process.execPath, [script, state, marks, String(share), String(atOnce)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let dieAt = killsLeft-- > 0 ? Math.ceil(share / 3) : Infinity;
    let own = 0;
    child.stdout.on("data", (dots: Buffer) => {
      own += dots.length;
      found.acknowledged += dots.length;
      if (own < dieAt) return;
      // Its earlier output may still arrive.
      dieAt = Infinity;
      if (child.kill("SIGKILL")) found.killed += 1;
    });
    child.stderr.on("data", (text: Buffer) => found.errors.push(text.toString("utf8")));
    return new Promise((resolve) => void child.once("close", () => resolve()));
  };
  const keepGoing = async (): Promise<void> => {
    while (found.acknowledged < requested && found.errors.length === 0) await runOneProcess();
  };
  await Promise.all(Array.from({ length: writers }, keepGoing));
  return found;
}

function runProgram(
  [file = "", ...args]: string[],
  cwd: string,
  state: string,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: cwd, DROVER_STATE_DIR: state };
  const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...output }));
  });
}
