import { HostError } from "../../../model/errors.ts";
import { connect, schema } from "../connection.ts";
import { toHostError, getPublicName } from "../errors.ts";
import { first } from "./0001_first.ts";
import { agentsByName } from "./0002_agents_by_name.ts";
import { judgedAt } from "./0003_judged_at.ts";
import { turns } from "./0004_turns.ts";
import { places } from "./0005_places.ts";
import { sessionState } from "./0006_session_state.ts";
import { questions } from "./0007_questions.ts";
import { forkAtTurn } from "./0008_fork_at_turn.ts";
import { overview } from "./0009_overview.ts";
import { runModel } from "./0010_run_model.ts";
import { schedules } from "./0011_schedules.ts";
import { webhooks } from "./0012_webhooks.ts";
import { sealedParameters } from "./0013_sealed_parameters.ts";
import { receivedAt } from "./0014_received_at.ts";
import { webhooksByOwner } from "./0015_webhooks_by_owner.ts";

/** Append only: never change a released migration. */
const migrations = [
  first,
  agentsByName,
  judgedAt,
  turns,
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

/** The schema version that this version of Drover writes. */
export const schemaVersion = migrations.length;

/** An arbitrary key for the advisory lock that serializes coordinators starting at the same time. */
const lock = 7_305_211_846;

/**
 * Migrates a new or older database to the current schema: completely or not at all, one process at a time. Refuses a newer
 * one.
 */
export async function migrate(url: string): Promise<void> {
  try {
    const connection = await connect(url);
    try {
      const [{ server_encoding: encoding = null } = {}] = await connection.exec("show server_encoding");
      if (encoding !== "UTF8") throw createEncodingError(url, String(encoding));
      await connection.exec(`begin; select pg_advisory_xact_lock(${lock})`);
      await connection.exec(
        `create schema if not exists ${schema}; create table if not exists schema_version (version integer not null)`,
      );
      const [row] = await connection.exec("select version from schema_version");
      const version = Number(row?.["version"] ?? 0);
      if (version > migrations.length) throw createNewerDatabaseError(url, version);
      for (const text of migrations.slice(version)) await connection.exec(text);
      await connection.exec(
        `delete from schema_version; insert into schema_version values (${migrations.length}); commit`,
      );
    } finally {
      connection.end();
    }
  } catch (error) {
    throw toHostError(error, url);
  }
}

function createEncodingError(url: string, encoding: string): HostError {
  return new HostError({
    code: "DROVER-STA-006",
    message: `${getPublicName(url)} uses the encoding ${encoding}, which cannot store all text.`,
    field: "DATABASE_URL",
    next: "Create another one with: create database NAME encoding 'UTF8' template template0. Nothing was changed.",
  });
}

function createNewerDatabaseError(url: string, version: number): HostError {
  return new HostError({
    code: "DROVER-STA-005",
    message: `${getPublicName(url)} has schema version ${version}; this version of Drover supports schema versions up to ${migrations.length}.`,
    field: "DATABASE_URL",
    next: "Update Drover on this machine. Nothing was changed.",
  });
}
