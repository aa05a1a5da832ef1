import { recordDirectory } from "../model/state-layout.ts";
import { type DatabaseSettings, readDatabaseSettings } from "../define/database-settings.ts";
import { findLocal } from "../local.ts";
import { type Verified, verifyAudit } from "../record/audit/verify.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text } from "./options.ts";

export const auditVerify: CommandSpec = {
  name: "audit verify",
  summary: "check that no audit record was changed, removed or put in",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover audit verify", "prints the head: note it somewhere else"],
    ["drover audit verify --head 42:9f3c...", "also fails where that head is no longer part of the chain"],
  ],
  options: { head: { value: "H", about: "a head printed earlier, as COUNT:MAC" } },
  run: verify,
};

async function verify(input: CommandInput): Promise<number> {
  const head = text(input.options, "head");
  const database = readDatabaseSettings(input.env);
  const found = await (database ? verifyFleet(database, head) : verifyHere(input, head));
  write(1, input.options["json"] ? jsonLine(found) : inWords(found, database ? "database" : "state directory"));
  return found.ok ? 0 : 1;
}

async function verifyHere(input: CommandInput, head: string | undefined): Promise<Verified> {
  const { places } = await findLocal(input.env, input.cwd);
  return verifyAudit({ directory: recordDirectory(places.stateDirectory), headCopy: places.headCopy, head });
}

async function verifyFleet(database: DatabaseSettings, head: string | undefined): Promise<Verified> {
  const { verifyPostgres } = await import("../record/postgres/audit.ts");
  return verifyPostgres(database, head);
}

function inWords({ first_bad, rows, batches, head, pruned }: Verified, place: string): string {
  if (!first_bad) {
    const before = pruned ? `${pruned.rows} older rows were removed by retention.\n` : "";
    return `The record is whole: ${rows} rows in ${batches} batches.\n${before}head ${head}\n`;
  }
  const { what, batch_no, row_no } = first_bad;
  const where = [row_no && `row ${row_no}`, batch_no && `batch ${batch_no}`].filter(Boolean).join(" of ") || "the end";
  return (
    `The record is NOT whole, first at ${where}: ${what} [DROVER-AUD-002]\n` +
    `  Keep this ${place} as it is, and compare it with a backup; see docs/audit.md.\n`
  );
}
