import type { ResultEvent } from "../../model/event.ts";
import { fillTemplate, resolveValues, getValueAt, type ValueSource } from "../../model/json-values.ts";
import { hasRedactionMark } from "../../model/redaction-mark.ts";
import { first, write, type Work } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { storeEvent } from "../ops/store-events.ts";
import { readAgentSnapshot } from "./agent-snapshot.ts";
import type { StoredRun } from "./stored-run.ts";

/** How many runs may follow each other through `on_finish`. The same limit as for nested submits. */
const maxChainLength = 8;

const selectRun = `
  select runs.agent_name, runs.session_id, runs.summary, run_bodies.parameters, run_bodies.prompt,
    (select depth from chains where chains.child_run_id = runs.run_id) as depth
  from runs left join run_bodies using (run_no) where run_no = ?`;
const insertChain = `
  insert into chains (parent_run_no, status, agent_name, parameters, prompt, fault, depth)
  values (?, 'pending', ?, ?, ?, ?, ?)`;

/**
 * Stores what the follow-up run in the agent's `on_finish` needs, with values taken from the result, in the transaction that
 * ends the run. A coordinator creates that run later, see docs/decisions/0027-webhooks-and-chains.md.
 */
export function* storeChain(
  tx: Transaction,
  run: StoredRun,
  result: ResultEvent,
  at: string,
  summary: string | null,
): Work<void> {
  const chain = (yield* readAgentSnapshot(run))?.on_finish;
  if (typeof chain !== "object" || (chain.when !== "always" && chain.when !== result.status)) return;
  const [row = {}] = yield first(selectRun, run.run_no);
  const { type: _, ...ended } = result;
  const document = {
    ...ended,
    run_id: run.run_id,
    agent_name: textOrNull(row["agent_name"]),
    session_id: textOrNull(row["session_id"]),
    summary: summary ?? textOrNull(row["summary"]),
    parameters: JSON.parse(String(row["parameters"] ?? "{}")),
    prompt: textOrNull(row["prompt"]),
  };
  const depth = Number(row["depth"] ?? 0) + 1;
  const { values, missing } = resolveValues(chain.parameters ?? {}, document);
  const removed = run.sealed === 1 ? findRedacted(chain.parameters ?? {}, document) : [];
  const list = (sources: CopiedValue[]): string => sources.map(({ name, from }) => `${from} for ${name}`).join(", ");
  const fault =
    depth > maxChainLength
      ? `${maxChainLength} runs have followed each other through on_finish, which is the limit.`
      : missing.length > 0
        ? `The finished run has no value at ${list(missing)}.`
        : removed.length > 0
          ? `The secrets of the finished run were removed: ${list(removed)}.`
          : null;
  yield write(
    insertChain,
    run.run_no,
    toColumn(chain.agent),
    JSON.stringify(values),
    chain.prompt === undefined ? null : toColumn(fillTemplate(chain.prompt, document)),
    toColumn(fault),
    depth,
  );
  yield* storeEvent(tx, run, null, at, { type: "system", subtype: "on_finish", data: { agent_name: chain.agent } });
}

interface CopiedValue {
  name: string;
  from: string;
}

/** Finds copied parameters with a mark in place of a secret. Other parts of the document may quote marks. */
function findRedacted(
  sources: Readonly<Record<string, ValueSource>>,
  { parameters }: { parameters: unknown },
): CopiedValue[] {
  return Object.entries(sources).flatMap(([name, source]) => {
    if (typeof source !== "object" || source === null || !("from" in source)) return [];
    const copied = getValueAt({ parameters }, source.from);
    return hasRedactionMark(JSON.stringify(copied) ?? "") ? [{ name, from: source.from }] : [];
  });
}
