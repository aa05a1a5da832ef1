import { recordDirectory } from "../model/state-layout.ts";
import { readDatabaseSettings } from "../define/database-settings.ts";
import { findProject } from "../local.ts";
import { exportAudit } from "../record/audit/export.ts";
import { write } from "./io.ts";
import { escapeControlCharacters } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { readTime, timeForms } from "./read-time.ts";

export const auditExport: CommandSpec = {
  name: "audit export",
  summary: "export every execution as one line of JSON, oldest first",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover audit export > audit.jsonl", "everything"],
    ["drover audit export --since 2026-01-31", "since this day"],
    ["drover audit export --since 1h", "entries from the last hour"],
  ],
  options: {
    since: { placeholder: "TIME", description: `only entries recorded since TIME: ${timeForms}` },
    until: { placeholder: "TIME", description: "only entries recorded before TIME, in the same forms" },
  },
  run: exportEntries,
};

/** Escapes control characters in the stored JSON, which does not change its meaning. */
const writeLine = (line: string): void => write(1, escapeControlCharacters(line));

async function exportEntries(input: CommandInput): Promise<number> {
  const since = readTime(input.options, "since", "audit export");
  const until = readTime(input.options, "until", "audit export");
  const range = { ...(since ? { since } : {}), ...(until ? { until } : {}) };
  const database = readDatabaseSettings(input.env);
  if (database !== null) {
    const { exportPostgres } = await import("../record/postgres/audit.ts");
    await exportPostgres(database.url, range, writeLine);
    return 0;
  }
  const { locations } = await findProject(input.env, input.cwd);
  await exportAudit({ directory: recordDirectory(locations.stateDirectory), ...range }, writeLine);
  return 0;
}
