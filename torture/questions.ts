import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Question } from "../src/model/question.ts";
import { RequestError } from "../src/model/errors.ts";
import { killOne } from "./coordinator-killed.ts";
import { waitUntilAnswering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { killRunner, type RunnerSlot } from "./fleet-killed.ts";
import { withTestbed, type Testbed, type RunnerSpec } from "./testbed.ts";
import { readAllEvents, readAllRuns, findLogFaults, readAudit } from "./record.ts";
import { startStorm, waitUntilNothingMoves } from "./storm.ts";
import { forEachConcurrently, retryWhileUnreachable, pause, countUpTo } from "./wait.ts";

interface Sizes {
  runs: number;
  /** The number of questions per run. */
  questions: number;
  kills: number;
}

/**
 * Runs ask before each of their commands while coordinators and runners are killed and two people answer concurrently.
 * Some of the runs park. No question is lost or answered twice, and no command runs without approval.
 */
export async function questions({ runs, questions: each_, kills }: Sizes, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const marks = join(testbed.directory, "marks");
    const turns = [...countUpTo(each_)].map((turn) => {
      const command = `touch '${marks}'/"$DROVER_RUN_ID.${turn}.$(date +%s%N)"`;
      return { text: `Turn ${turn}.`, tools: [{ name: "command.run", input: { command } }] };
    });
    const script = join(testbed.directory, "scripts", "turns.json");
    writeFileSync(script, JSON.stringify({ turns: [...turns, { text: "Done." }] }));
    const slots: RunnerSlot[] = [];
    for (const index of countUpTo(2)) {
      const profile = { type: "model", config: { provider: "scripted", script } };
      const spec: RunnerSpec = { name: `runner-${index}`, slots: 4, times: { pollPauseMs: 50 }, profile };
      slots.push({ spec, child: (await testbed.startRunner(spec)).child });
    }
    await testbed.client.agents.put("asker", {
      type: "autonomous",
      executor: "model",
      permissions: { mode: "default" },
      attended: true,
      park_after_seconds: 1,
      max_attempts: 1000,
      max_turns: 10 * each_,
    });
    const submitted: string[] = [];
    await forEachConcurrently(countUpTo(runs), 4, async (index) => {
      const request = { agent_name: "asker", prompt: "work", idempotency_key: `run ${index}` };
      submitted.push((await retryWhileUnreachable(() => testbed.client.submit(request))).run_id);
    });
    const injectFault = async (): Promise<void> => {
      if (Math.random() < 0.5) return killOne(testbed);
      await killRunner(testbed, slots[Math.floor(Math.random() * slots.length)]!);
    };
    const stormEnd = new AbortController();
    const answered: Question[] = [];
    const people = [...countUpTo(2)].map(() => answerAll(testbed, answered, stormEnd.signal));
    // Rejections are handled where these promises are awaited.
    for (const person of people) person.catch(() => undefined);
    const storm = startStorm(kills, injectFault, tools.progress);
    await storm.over;
    await Promise.all(testbed.coordinators.map(({ url, child }) => waitUntilAnswering(url, child)));
    const stuck = await waitUntilNothingMoves(testbed, () => answered.length);
    stormEnd.abort();
    await Promise.all(people);
    return judge(testbed, { submitted, turns: each_, given: answered, stuck, marks, kills });
  });
}

/** Answers open questions until aborted and allows most of them. Adds acknowledged answers to `given`. */
async function answerAll({ client }: Testbed, answered: Question[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { items } = await retryWhileUnreachable(() => client.questions.list({ limit: 200 }));
    await forEachConcurrently(items, 4, async ({ run_id, request_id }) => {
      // Let some wait long enough to park.
      await pause(Math.random() < 0.1 ? 1500 : Math.random() * 50);
      const body = Math.random() < 0.8 ? ({ decision: "allow" } as const) : ({ decision: "deny" } as const);
      try {
        answered.push(await retryWhileUnreachable(() => client.questions.answer(run_id, request_id, body)));
      } catch (error) {
        // The other person answered first, or the run has asked again.
        if (!(error instanceof RequestError) || !/^DROVER-API-03[12]$/.test(error.code)) throw error;
      }
    });
    await pause(50);
  }
}

interface Found {
  submitted: readonly string[];
  turns: number;
  given: readonly Question[];
  stuck: number;
  marks: string;
  kills: number;
}

async function judge(
  testbed: Testbed,
  { submitted, turns, given: answered, stuck, marks, kills }: Found,
): Promise<Finding> {
  const broken: string[] = [];
  const rows = await readAllRuns(testbed.client);
  for (const run of rows)
    if (run.status !== "completed") broken.push(`${run.run_id} is ${run.status}: ${run.reason} ${run.error}`);
  if (rows.length !== submitted.length) broken.push(`${rows.length} runs for ${submitted.length} requests`);
  if (stuck > 0) broken.push(`${stuck} runs were open when none had ended for 60 s`);
  const byTurn = new Map<string, Question[]>();
  const everAsked = new Set<string>();
  let superseded = 0;
  let neverAsked = 0;
  for (const run_id of submitted) {
    const [closed, open] = [
      await testbed.client.questions.list({ run_id, open: false, limit: 1000 }),
      await testbed.client.questions.list({ run_id, limit: 1000 }),
    ];
    if (open.items.length > 0) broken.push(`${run_id} has ended with ${open.items.length} open questions`);
    for (const question of closed.items) {
      everAsked.add(questionKey(question));
      if (question.decision === "superseded") superseded += 1;
      else byTurn.set(questionKey(question), [...(byTurn.get(questionKey(question)) ?? []), question]);
    }
    for (const turn of countUpTo(turns)) {
      const key = `${run_id}.${turn}`;
      const answers = byTurn.get(key)?.length ?? 0;
      // The runner died before it asked, and the model was told that the effect of the call is unknown.
      if (!everAsked.has(key)) neverAsked += 1;
      else if (answers !== 1) broken.push(`question ${turn} of ${run_id} was answered ${answers} times`);
    }
  }
  for (const item of answered) {
    const [stored] = byTurn.get(questionKey(item)) ?? [];
    if (stored?.decision !== item.decision || stored?.answered_at !== item.answered_at)
      broken.push(`an answer that was acknowledged is not on the record: ${JSON.stringify(item)}`);
  }
  const carriedOut = new Map<string, number>();
  for (const name of readdirSync(marks)) {
    const [run_id = "", turn = ""] = name.split(".");
    const key = `${run_id}.${turn}`;
    carriedOut.set(key, (carriedOut.get(key) ?? 0) + 1);
    const [answer] = byTurn.get(key) ?? [];
    if (answer?.decision !== "allow") broken.push(`the command ${key} ran, and its answer is ${answer?.decision}`);
    else if (statSync(join(marks, name)).mtimeMs < Date.parse(answer.answered_at ?? "") - 1)
      broken.push(`the command ${key} ran before it was allowed`);
  }
  for (const [key, times] of carriedOut) if (times > 1) broken.push(`the command ${key} ran ${times} times`);
  for (const [run_id, log] of await readAllEvents(testbed.client)) broken.push(...findLogFaults(run_id, log));
  const { verified } = await readAudit(testbed);
  if (!verified) broken.push("the audit chain does not verify");
  const attempts = rows.reduce((sum, { attempt }) => sum + attempt, 0);
  return {
    seen: {
      kills,
      runs: submitted.length,
      questions: byTurn.size,
      acknowledged: answered.length,
      "asked again": superseded,
      "never asked": neverAsked,
      attempts,
      "commands that ran": carriedOut.size,
    },
    broken,
    late: [],
  };
}

/** Identifies a question by run and turn, across attempts. */
function questionKey({ run_id, input }: Question): string {
  const turn = /DROVER_RUN_ID\.(\d+)\./.exec(JSON.stringify(input))?.[1];
  return `${run_id}.${turn}`;
}
