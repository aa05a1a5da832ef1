import { recordDirectory } from "../model/state-layout.ts";
import { type DatabaseSettings, readDatabaseSettings } from "../define/database-settings.ts";
import { findProject } from "../local.ts";
import { type VerifyResult, verifyAudit } from "../record/audit/verify.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText } from "./options.ts";

export const auditVerify: CommandSpec = {
  name: "audit verify",
  summary: "verify that no audit entry was changed, removed or inserted",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover audit verify", "prints the head; keep a copy of it elsewhere"],
    ["drover audit verify --head 42:9f3c...", "also fails if this head is no longer part of the chain"],
  ],
  options: {
    head: { placeholder: "H", description: "also check that the audit chain contains this earlier head, as COUNT:MAC" },
  },
  run: verify,
};

async function verify(input: CommandInput): Promise<number> {
  const head = readText(input.options, "head");
  const database = readDatabaseSettings(input.env);
  const result = await (database ? verifyFleet(database, head) : verifyLocal(input, head));
  write(1, input.options["json"] ? toJsonLine(result) : describe(result, database ? "database" : "state directory"));
  return result.ok ? 0 : 1;
}

async function verifyLocal(input: CommandInput, head: string | undefined): Promise<VerifyResult> {
  const { locations } = await findProject(input.env, input.cwd);
  return verifyAudit({ directory: recordDirectory(locations.stateDirectory), headCopy: locations.headCopy, head });
}

async function verifyFleet(database: DatabaseSettings, head: string | undefined): Promise<VerifyResult> {
  const { verifyPostgres } = await import("../record/postgres/audit.ts");
  return verifyPostgres(database, head);
}

function describe({ first_bad, rows, batches, head, pruned }: VerifyResult, recordKind: string): string {
  if (!first_bad) {
    const removalNote = pruned ? `Retention removed ${pruned.rows} older rows.\n` : "";
    return `The record is intact: ${rows} rows in ${batches} batches.\n${removalNote}head ${head}\n`;
  }
  const { what: fault, batch_no, row_no } = first_bad;
  const where = [row_no && `row ${row_no}`, batch_no && `batch ${batch_no}`].filter(Boolean).join(" of ") || "the end";
  return (
    `The record is NOT intact. The first fault is at ${where}: ${fault} [DROVER-AUD-002]\n` +
    `  Do not change this ${recordKind}, and compare it with a backup; see docs/audit.md.\n`
  );
}
