import type { UsageRow } from "../model/question.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { readTime } from "./read-time.ts";
import { writeTable } from "./table.ts";

const groupings = ["agent", "day", "session"] as const;

export const usageCommand: CommandSpec = {
  name: "usage",
  summary: "show token usage and cost by agent, UTC day or session",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover usage", "by agent"],
    ["drover usage --by day --since 7d", "by day, for the last 7 days; also --since 2026-01-01"],
    ["drover usage --by session --agent claude --json", "by session of one agent, as JSON lines"],
  ],
  options: {
    by: { placeholder: "WHAT", choices: groupings, description: `group by ${groupings.join(", ")} (default: agent)` },
    since: { placeholder: "TIME", description: "the first UTC day, such as 2026-01-31 or 7d" },
    until: { placeholder: "TIME", description: "only before this UTC day, such as 2026-01-31 or 7d" },
    agent: { placeholder: "NAME", description: "only runs of this agent" },
  },
  run: showUsage,
};

async function showUsage(input: CommandInput): Promise<number> {
  const { options } = input;
  const value = readText(options, "by") ?? "agent";
  const by = groupings.find((known) => known === value);
  if (!by) throw usageError(`--by ${value} is not one of ${groupings.join(", ")}.`, "usage", "--by");
  // The record contains one sum of the usage per UTC day.
  const [since, until] = (["since", "until"] as const).map((name) => readTime(options, name, "usage")?.slice(0, 10));
  const page = await withRecord(input, (client) =>
    client.usage({ by, since, until, agent_name: readText(options, "agent"), limit: 1000 }),
  );
  if (!page) return 0;
  if (options["json"]) for (const row of page.items) write(1, toJsonLine(row));
  else if (page.items.length > 0)
    writeTable(
      [by.toUpperCase(), "RUNS", "TURNS", "TOKENS IN", "TOKENS OUT", "COST"],
      page.items.map((row) => toCells(row, by)),
    );
  else if (!options["quiet"]) write(2, "No run has used a model yet.\n");
  return 0;
}

function toCells(row: UsageRow, by: (typeof groupings)[number]): string[] {
  const { cost_usd } = row;
  const key = { agent: row.agent_name, day: row.day, session: row.session_id }[by];
  return [
    key ?? "-",
    ...[row.runs, row.turns, row.input_tokens, row.output_tokens].map(String),
    cost_usd === null ? "-" : `$${cost_usd.toFixed(cost_usd < 1 ? 4 : 2)}`,
  ];
}
