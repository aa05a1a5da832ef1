import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createModelExecutor } from "../src/execute/executors/loop/model-executor.ts";
import type { ToolResponse } from "../src/model/tool.ts";
import { start } from "../src/process/start.ts";
import { callTool, createFileTools } from "../src/tools/file-tools.ts";
import { findRipgrep } from "../src/tools/ripgrep.ts";
import { openWorkspace } from "../src/tools/workspace.ts";
import { createInvocation } from "../test/fixtures/execute/memory-port.ts";
import { openContext } from "../test/fixtures/execute/open-context.ts";
import {
  formatAdded,
  computeDifference,
  interleave,
  median,
  formatMs,
  printTable,
  computeRatio,
  formatTimes,
  type Variant,
} from "./rounds.ts";
import { describeMachine, chooseRounds, runBench, isRequested } from "./run-bench.ts";

const files = 10_000;
const turns = 50;

/** Measures the executor `model` with a model without latency, and the file tools against the functions they use. */
async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "drover-bench-"));
  process.stdout.write(`${describeMachine()}\n`);
  try {
    if (isRequested("turns")) await measureTurns(directory);
    if (isRequested("tools")) await measureTools(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Measures from one answer of the model to the next: events, a tool that reads one line, and the saved state. */
async function measureTurns(directory: string): Promise<void> {
  const script = join(directory, "script.json");
  const tools = (line: number) => [{ name: "file.read", input: { path: "lines.txt", offset: line, limit: 1 } }];
  const scriptedTurns = Array.from({ length: turns }, (_, index) => ({
    text: `line ${index}`,
    tools: tools(index + 1),
  }));
  writeFileSync(script, JSON.stringify({ turns: [...scriptedTurns, { text: "done" }] }));
  const executor = createModelExecutor({
    env: {},
    newId: () => "bench",
    version: "0",
    checkInput: async () => [],
  });
  const perRound: number[] = [];
  for (let round = -1; round < chooseRounds(15); round += 1) {
    const turnTimes: number[] = [];
    const opened = await openContext({
      async emit(event) {
        if (event.type === "assistant") turnTimes.push(performance.now());
      },
    });
    writeFileSync(join(opened.context.dirs.work, "lines.txt"), "a line of text\n".repeat(turns));
    const config = { executor_config: { provider: "scripted", script }, prompt: "go" };
    const outcome = await executor.run(createInvocation("r", { type: "autonomous" }, config), opened.context);
    if (outcome.status !== "completed") throw new Error(JSON.stringify(outcome));
    if (round >= 0) perRound.push(median(turnTimes.slice(1).map((time, turn) => time - turnTimes[turn]!)));
    await opened.close();
  }
  printTable(
    `loop: one turn with a tool, model without latency, p50 of ${turns} turns`,
    ["what", "median of rounds", "min", "max", "goal"],
    [
      [
        "answer to next answer",
        formatMs(median(perRound)),
        formatMs(Math.min(...perRound)),
        formatMs(Math.max(...perRound)),
        "<= 2 ms",
      ],
    ],
  );
}

async function measureTools(directory: string): Promise<void> {
  const root = join(directory, "workspace");
  fill(root);
  const tools = createFileTools(await openWorkspace(root));
  const { signal } = new AbortController();
  const context = { signal, start: async (command: Parameters<typeof start>[0]) => start(command, {}, signal) };
  const call = async (input: object): Promise<void> => expectOk(await callTool(tools, input, context));
  const compare = async (ours: Variant, peer: Variant, rounds: number, perRound: number) => {
    const durations = await interleave([ours, peer], chooseRounds(rounds), perRound);
    const formatMedian = (variant: Variant): string => formatMs(median(durations.get(variant.name)!));
    return {
      taken: durations,
      row: [
        ours.name,
        formatMedian(ours),
        peer.name,
        formatMedian(peer),
        formatTimes(computeRatio(durations, ours.name, peer.name)),
      ],
    };
  };
  const big = join(root, "big.txt");
  const reading = await compare(
    { name: "file.read, 1 MB", once: () => call({ tool: "file.read", path: "big.txt" }) },
    { name: "fs.readFile as text", once: async () => void (await readFile(big, "utf8")) },
    15,
    20,
  );
  const pattern = "needle \\d+";
  const searching = await compare(
    { name: "file.search, 10,000 files", once: () => call({ tool: "file.search", pattern }) },
    { name: "ripgrep by itself", once: () => runRipgrep(pattern, root) },
    9,
    3,
  );
  const listing = await compare(
    { name: "file.list **, 10,000 files", once: () => call({ tool: "file.list", pattern: "**" }) },
    {
      name: "fs.readdir, recursive",
      once: async () => void (await readdir(root, { recursive: true, withFileTypes: true })),
    },
    9,
    3,
  );
  const addedTime = formatAdded(computeDifference(reading.taken, "file.read, 1 MB", "fs.readFile as text"));
  printTable(
    "file tools in process",
    ["what", "median", "beside", "median", "ratio", "goal"],
    [
      [...reading.row, `<= 1.5x plus 1 ms (${addedTime})`],
      [...searching.row, "<= 1.3x"],
      [...listing.row, "< 150 ms"],
    ],
  );
}

/** Creates 100 directories with 100 files each, and a file of 1 MB without a match. */
function fill(root: string): void {
  const text = "some words of a line that is searched\n".repeat(40);
  for (let index = 0; index < files - 1; index += 1) {
    const directory = join(root, `folder-${index % 100}`);
    if (index < 100) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `file-${index}.txt`), index % 200 === 0 ? `${text}needle ${index}\n` : text);
  }
  writeFileSync(join(root, "big.txt"), `${"x".repeat(63)}\n`.repeat(16 * 1024));
}

function runRipgrep(pattern: string, cwd: string): Promise<void> {
  const args = ["--json", "--no-config", "--hidden", "--glob=!.git", `--regexp=${pattern}`, "--", "./"];
  return new Promise((done, reject) => {
    execFile(findRipgrep(), args, { cwd, maxBuffer: 2 ** 26 }, (error) => (error ? reject(error) : done()));
  });
}

function expectOk(answer: ToolResponse): void {
  if (!answer.ok) throw new Error(answer.error.message);
}

runBench(main, {});
