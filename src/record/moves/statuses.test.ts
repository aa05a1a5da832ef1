import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { eachEngine } from "../../../test/fixtures/record/each-engine.ts";
import { isAssignedToRunner, isClaimable, statusIn } from "./statuses.ts";

const sets: Record<string, string> = {
  runs_by_runner: isAssignedToRunner,
  runs_busy_by_agent: `agent_rev_id is not null and ${statusIn("busy")}`,
  runs_in_directory: `directory is not null and ${statusIn("assigned")}`,
  runs_to_claim: isClaimable,
  runs_to_claim_of: isClaimable,
};

it.each(["sqlite", "postgres"])("finds the status sets of the model in the partial indexes of %s", (engine) => {
  const directory = new URL(`../${engine}/migrations/`, import.meta.url);
  const text = readdirSync(directory)
    .map((name) => readFileSync(new URL(name, directory), "utf8"))
    .join("\n");
  const found = [...text.matchAll(/create index (\w+) on runs .* where (.*status.*);/g)].map(([, name = "", where]) => [
    name,
    where,
  ]);
  const checkedIndexes = found.filter(([name = ""]) => name in sets);
  expect(Object.fromEntries(checkedIndexes)).toEqual(
    Object.fromEntries(Object.entries(sets).map(([name, condition]) => [name, condition.replaceAll("runs.", "")])),
  );
});

eachEngine("conditions on the status of runs", (record) => {
  it.each(
    Object.entries({
      runs_by_runner: `runner_id = 'r' and ${isAssignedToRunner}`,
      runs_busy_by_agent: `agent_name = 'a' and agent_rev_id is not null and ${statusIn("busy")}`,
      runs_in_directory: `directory = 'd' and directory is not null and ${statusIn("assigned")}`,
      runs_to_claim: `demand_id = 1 and ${isClaimable} order by priority desc, run_id`,
    }),
  )("use the index %s", async (index, condition) => {
    expect(await record.plan(`select run_no from runs where ${condition}`)).toContain(index);
  });
});
