import type { ResultEvent } from "../../model/event.ts";
import { fillTemplate, resolveValues, getValueAt, type ValueSource } from "../../model/json-values.ts";
import { hasRedactionMark } from "../../model/redaction-mark.ts";
import { first, write, type Work } from "../query.ts";
import { textOrNull, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { storeEvent } from "../ops/store-events.ts";
import { readAgentSnapshot } from "./agent-snapshot.ts";
import type { StoredRun } from "./stored-run.ts";

/** The maximum length of a chain of runs. The same limit as for nested submits. */
const maxChainLength = 8;

const selectRun = `
  select runs.agent_name, runs.session_id, runs.summary, run_bodies.parameters, run_bodies.prompt,
    (select depth from chains where chains.child_run_id = runs.run_id) as depth
  from runs left join run_bodies using (run_no) where run_no = ?`;
const insertChain = `
  insert into chains (parent_run_no, status, agent_name, parameters, prompt, fault, depth)
  values (?, 'pending', ?, ?, ?, ?, ?)`;

/**
 * Stores the follow-up run that the agent's `on_finish` asks for, with values from the result, in the transaction that ends
 * the run. A coordinator submits the follow-up run later. See docs/decisions/0027-webhooks-and-chains.md.
 */
export function* storeFollowUp(
  tx: Transaction,
  run: StoredRun,
  result: ResultEvent,
  at: string,
  summary: string | null,
): Work<void> {
  const onFinish = (yield* readAgentSnapshot(run))?.on_finish;
  if (typeof onFinish !== "object" || (onFinish.when !== "always" && onFinish.when !== result.status)) return;
  const [row = {}] = yield first(selectRun, run.run_no);
  const { type: _, ...resultFields } = result;
  const document = {
    ...resultFields,
    run_id: run.run_id,
    agent_name: textOrNull(row["agent_name"]),
    session_id: textOrNull(row["session_id"]),
    summary: summary ?? textOrNull(row["summary"]),
    parameters: JSON.parse(String(row["parameters"] ?? "{}")),
    prompt: textOrNull(row["prompt"]),
  };
  const depth = Number(row["depth"] ?? 0) + 1;
  const { values, missing } = resolveValues(onFinish.parameters ?? {}, document);
  const redacted = run.sealed === 1 ? findRedacted(onFinish.parameters ?? {}, document) : [];
  const list = (copies: CopiedValue[]): string => copies.map(({ name, from }) => `${from} for ${name}`).join(", ");
  const fault =
    depth > maxChainLength
      ? `The chain of runs has reached its limit of ${maxChainLength} runs. Check whether agents start each other in a loop.`
      : missing.length > 0
        ? `The finished run has no value at ${list(missing)}. Correct the pointers in on_finish, or give them a default.`
        : redacted.length > 0
          ? `on_finish would copy redacted secrets: ${list(redacted)}. Pass the secret to the next agent in another way.`
          : null;
  yield write(
    insertChain,
    run.run_no,
    toColumn(onFinish.agent),
    JSON.stringify(values),
    onFinish.prompt === undefined ? null : toColumn(fillTemplate(onFinish.prompt, document)),
    toColumn(fault),
    depth,
  );
  yield* storeEvent(tx, run, null, at, { type: "system", subtype: "on_finish", data: { agent_name: onFinish.agent } });
}

interface CopiedValue {
  name: string;
  from: string;
}

/**
 * Finds copied parameters with a mark in place of a secret. Looks only at parameters: text from the result can contain such
 * a mark without a secret having been there.
 */
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
