import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";
import { draw, isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { ListedRun, RunPage } from "./runs-filter.ts";
import { type Cell, formatTable, writeTable } from "./table.ts";
import { createScreen } from "./terminal/screen.ts";

const pauseMs = 2000;

interface View {
  header: readonly string[];
  toCells(row: ListedRun, now: Date): Cell[];
  json: boolean;
}

type ReadPage = () => Promise<RunPage | null>;

/** Shows the runs every 2 s until Ctrl-C, even while the coordinator restarts. Then exits with 130. */
export function watchRuns(readPage: ReadPage, view: View): Promise<never> {
  return isTerminal(1) && !view.json ? redraw(readPage, view) : printChanges(readPage, view);
}

async function redraw(readPage: ReadPage, { header, toCells }: View): Promise<never> {
  const getSize = () => ({ columns: process.stdout.columns || 120, rows: process.stdout.rows || 40 });
  const screen = createScreen((text) => draw(1, text), getSize);
  let runs: readonly ListedRun[] = [];
  let problem: string | null = null;
  const toLines = (maxRuns?: number): string[] => {
    const now = new Date();
    // The screen leaves the last column empty.
    return formatTable(
      header,
      runs.slice(0, maxRuns).map((row) => toCells(row, now)),
      getSize().columns - 1,
    );
  };
  const show = (): void => {
    const { rows: height } = getSize();
    const lines = toLines(height - 4);
    const hidden = runs.length > height - 4 ? `, ${runs.length - (height - 4)} more below` : "";
    const footer =
      problem ?? `${runs.length} ${runs.length === 1 ? "run" : "runs"}${hidden}. Press Ctrl-C to stop watching.`;
    screen.setLiveArea({ rows: [...lines, "", footer], cursor: null });
  };
  process.on("SIGINT", () => {
    screen.close();
    // Leave the last state on the terminal.
    draw(1, `${toLines().join("\n")}\n`);
    process.exit(130);
  });
  process.stdout.on("resize", show);
  for (;;) {
    [runs, problem] = await readAgain(readPage, runs);
    show();
    await pause(pauseMs);
  }
}

async function printChanges(readPage: ReadPage, { toCells, json }: View): Promise<never> {
  process.on("SIGINT", () => process.exit(130));
  const printedStates = new Map<string, string>();
  let reportedProblem: string | null = null;
  for (;;) {
    const [runs, problem] = await readAgain(readPage, []);
    if (problem !== null && problem !== reportedProblem) write(2, `drover: ${problem}\n`);
    reportedProblem = problem;
    for (const run of runs.toReversed()) {
      const state = JSON.stringify(run);
      if (printedStates.get(run.run_id) === state) continue;
      printedStates.set(run.run_id, state);
      if (json) write(1, toJsonLine(run));
      else writeTable([], [toCells(run, new Date())]);
    }
    // Drop the states of runs that are no longer in the list.
    if (problem === null) keepOnly(printedStates, runs);
    await pause(pauseMs);
  }
}

function keepOnly(states: Map<string, string>, runs: readonly ListedRun[]): void {
  const ids = new Set(runs.map(({ run_id }) => run_id));
  for (const id of states.keys()) if (!ids.has(id)) states.delete(id);
}

/** Returns the previous runs and the problem if the coordinator does not respond, because it may be restarting. */
async function readAgain(
  readPage: ReadPage,
  previous: readonly ListedRun[],
): Promise<[runs: readonly ListedRun[], problem: string | null]> {
  try {
    return [(await readPage())?.items ?? [], null];
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return [previous, `Trying again every ${pauseMs / 1000} s: ${error.message}`];
  }
}
