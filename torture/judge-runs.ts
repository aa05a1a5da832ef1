import type { RunRow } from "../src/model/store.ts";
import type { Finding } from "./finding.ts";
import type { Testbed } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults, readAudit } from "./record.ts";

interface Circumstances {
  /** Ids of the acknowledged runs, one per request. */
  submitted: readonly string[];
  /** Runs still open after a long time without progress. */
  stuck: number;
  /** Whether runners were killed, so that a lost attempt may be followed by another. Otherwise each run executes once. */
  runnersDied?: boolean;
}

/** Checks that every submitted run exists, completed, was executed exactly as often as it should, and is on record. */
export async function judgeRuns(
  testbed: Testbed,
  { submitted, stuck, runnersDied = false }: Circumstances,
): Promise<Finding> {
  const broken: string[] = [];
  const runs = new Map((await readAllRuns(testbed.client)).map((run) => [run.run_id, run]));
  const lost = submitted.filter((run_id) => !runs.has(run_id));
  if (lost.length > 0) broken.push(`lost: ${lost.join(", ")}`);
  if (new Set(submitted).size !== submitted.length) broken.push("two requests were answered with one run");
  if (runs.size !== submitted.length) broken.push(`${runs.size} runs for ${submitted.length} requests`);
  if (stuck > 0) broken.push(`${stuck} were open when none had ended for 60 s`);
  const failed = [...runs.values()].filter(({ status }) => status !== "completed");
  for (const run of failed.slice(0, 20)) broken.push(`${run.run_id} is ${run.status}: ${run.reason} ${run.error}`);

  const marks = testbed.marks().map((name) => name.split("."));
  const { twice, again: repeats } = countRepeatedExecutions(marks, runs, runnersDied);
  broken.push(...twice);
  const logs = await readAllEvents(testbed.client);
  for (const [run_id, log] of logs) broken.push(...findLogFaults(run_id, log));

  const audit = await readAudit(testbed);
  if (!audit.verified) broken.push("the audit chain does not verify");
  const unrecorded = marks.filter(([, , execution_id = ""]) => !audit.executions.has(execution_id));
  // If the runner died, nobody saw the end.
  const unended = runnersDied ? [] : [...audit.executions.values()].filter(({ state }) => state !== "ended");
  if (unrecorded.length > 0) broken.push(`${unrecorded.length} executions without a start on the record`);
  if (unended.length > 0) broken.push(`${unended.length} executions without an end on the record`);
  // If the runner died between recording and spawning, the command never started.
  if (runnersDied ? audit.executions.size < marks.length : audit.executions.size !== marks.length)
    broken.push(`${audit.executions.size} executions on the record, ${marks.length} marks`);
  return {
    seen: {
      runs: submitted.length,
      lost: lost.length,
      stuck,
      "not completed": failed.length,
      "carried out twice": twice.length,
      ...(runnersDied ? { "begun again after a loss": repeats } : {}),
      executions: marks.length,
      "missing on the record": unrecorded.length + unended.length,
    },
    broken,
    late: [],
  };
}

/** Counts as twice: the same attempt again, or another attempt although none was lost. */
function countRepeatedExecutions(
  marks: readonly string[][],
  runs: ReadonlyMap<string, RunRow>,
  runnersDied: boolean,
): { twice: string[]; again: number } {
  const attempts = new Map<string, string[]>();
  for (const [run_id = "", attempt = ""] of marks) attempts.set(run_id, [...(attempts.get(run_id) ?? []), attempt]);
  const twice: string[] = [];
  let repeats = 0;
  for (const [run_id, started] of attempts) {
    const run = runs.get(run_id);
    repeats += started.length - 1;
    const allowed = runnersDied ? 1 + (run?.failures ?? 0) : 1;
    if (started.length <= allowed && new Set(started).size === started.length) continue;
    twice.push(
      `${run_id} was carried out ${started.length} times, at attempts ${started.join()}; its attempt is ${run?.attempt}, its failures ${run?.failures}`,
    );
  }
  return { twice, again: repeats };
}
