import { BugError } from "../../../model/errors.ts";
import type { Connection } from "../connection.ts";
import { toHostError } from "../errors.ts";
import { createNewerDatabaseError } from "../newer-database.ts";
import { withRetries } from "../with-retries.ts";
import { rollBack } from "../write-lock.ts";
import { first } from "./0001_first.ts";
import { dispatch } from "./0002_dispatch.ts";
import { files } from "./0003_files.ts";
import { storeId } from "./0004_store_id.ts";
import { agentType } from "./0005_agent_type.ts";
import { agentsByName } from "./0006_agents_by_name.ts";
import { places } from "./0007_places.ts";
import { sessionState } from "./0008_session_state.ts";
import { questions } from "./0009_questions.ts";
import { forkAtTurn } from "./0010_fork_at_turn.ts";
import { overview } from "./0011_overview.ts";
import { runModel } from "./0012_run_model.ts";
import { schedules } from "./0013_schedules.ts";
import { webhooks } from "./0014_webhooks.ts";
import { sealedParameters } from "./0015_sealed_parameters.ts";
import { receivedAt } from "./0016_received_at.ts";
import { webhooksByOwner } from "./0017_webhooks_by_owner.ts";
import { schemaVersion } from "./version.ts";

/** Append only: never change a released migration. */
export const migrations = [
  first,
  dispatch,
  files,
  storeId,
  agentType,
  agentsByName,
  places,
  sessionState,
  questions,
  forkAtTurn,
  overview,
  runModel,
  schedules,
  webhooks,
  sealedParameters,
  receivedAt,
  webhooksByOwner,
];

/** Migrates a new or older database to the current schema: completely or not at all, one process at a time. */
export async function migrate(connection: Connection, waitMs: number): Promise<void> {
  if (migrations.length !== schemaVersion) throw new BugError("schemaVersion does not count the migrations");
  // A new file cannot be switched to WAL while another process is doing so.
  await withRetries(() => connection.exec("pragma journal_mode = wal"), connection.file, waitMs);
  await withRetries(() => connection.exec("begin immediate"), connection.file, waitMs);
  try {
    // Read again under the lock: another process may have migrated it meanwhile, perhaps to a newer version.
    const version = readVersion(connection);
    if (version > schemaVersion) throw createNewerDatabaseError(connection.file, version);
    for (const text of migrations.slice(version)) connection.exec(text);
    connection.exec(`pragma user_version = ${schemaVersion}`);
    connection.exec("commit");
  } catch (error) {
    rollBack(connection);
    throw toHostError(error, connection.file);
  }
}

function readVersion(connection: Connection): number {
  return Number(connection.sql("pragma user_version").get()?.["user_version"]);
}
