import { existsSync } from "node:fs";
import type { Project } from "../../local.ts";
import type { Agent } from "../../model/agent.ts";
import { databaseFile, recordDirectory } from "../../model/state-layout.ts";
import type { ApiClient } from "../../wire/client.ts";
import { connect } from "../connect.ts";
import type { CommandInput } from "../options.ts";
import { findProperty, readTypes } from "../parameter-types.ts";
import { formatAge } from "../table.ts";
import type { Candidate, ValueKind, ValueReader } from "./find-candidates.ts";

/** How many runs or sessions a completion offers. */
const maxRecent = 30;

/** Reads values within the time budget. Any failure means no values, because a completion is no place to report it. */
export function createValueReader(input: CommandInput, budgetMs: number): ValueReader {
  const withinBudget = async (read: Promise<Candidate[]>): Promise<Candidate[]> => {
    const timeout = new Promise<Candidate[]>((resolve) => setTimeout(resolve, budgetMs, []));
    return Promise.race([read.catch(() => []), timeout]);
  };
  return {
    list: (kind) => withinBudget(readList(input, kind)),
    parameters: (agent) => withinBudget(readParameters(input, agent)),
    parameterValues: (agent, parameter) => withinBudget(readParameterValues(input, agent, parameter)),
  };
}

async function readList(input: CommandInput, kind: ValueKind): Promise<Candidate[]> {
  const { client, project } = await connect(input);
  if (kind === "agents")
    return (await listAgents(input, client, project)).map(({ name, description }) => toCandidate(name, description));
  if (client) return readFromClient(client, kind);
  return kind === "runs" || kind === "sessions" ? readRecord(project, (record) => readFromClient(record, kind)) : [];
}

async function readFromClient(client: ApiClient, kind: Exclude<ValueKind, "agents">): Promise<Candidate[]> {
  const now = new Date();
  switch (kind) {
    case "runs": {
      const { items } = await client.runs.list({ limit: maxRecent });
      return items.map((run) =>
        toCandidate(run.run_id, `${run.agent_name}, ${run.status}, ${formatAge(run.created_at, now)}`),
      );
    }
    case "sessions": {
      const { items } = await client.sessions.list({ limit: maxRecent });
      return items.map((session) =>
        toCandidate(
          session.session_id,
          `${session.agent_name}, ${session.run_count} ${session.run_count === 1 ? "run" : "runs"}, ${formatAge(session.last_used_at, now)}`,
        ),
      );
    }
    case "schedules": {
      const { items } = await client.schedules.list({ limit: 1000 });
      return items.map(({ name, agent_name, enabled }) =>
        toCandidate(name, enabled ? agent_name : `${agent_name}, disabled`),
      );
    }
    case "runners": {
      const { items } = await client.runners.list();
      return items.map(({ runner_id, executor_profile, status }) =>
        toCandidate(runner_id, `${executor_profile}, ${status}`),
      );
    }
    case "tokens": {
      const { items } = await client.tokens.list({ limit: 1000 });
      return items.map(({ token_id, subject, role }) => toCandidate(token_id, `${subject}, ${role}`));
    }
    case "hooks": {
      const { items } = await client.hooks.list();
      return items.map(({ name, agent_name }) => toCandidate(name, agent_name));
    }
    case "webhooks": {
      const { items } = await client.webhooks.list();
      return items.map(({ name, url }) => toCandidate(name, url));
    }
  }
}

/** Opens the record for reading only: no lock, no sweep, no new files. */
async function readRecord<T>(project: Project, read: (client: ApiClient) => Promise<T[]>): Promise<T[]> {
  const directory = recordDirectory(project.locations.stateDirectory);
  if (!existsSync(databaseFile(directory))) return [];
  const [{ openStore }, { createRecordClient }] = await Promise.all([
    import("../../record/open.ts"),
    import("../../compose/record-client.ts"),
  ]);
  const store = await openStore({ directory, now: () => new Date(), mode: "read" });
  try {
    return await read(createRecordClient(store));
  } finally {
    await store.close();
  }
}

type CompletedAgent = Pick<Agent, "name" | "description" | "parameters_schema" | "type">;

async function listAgents(
  input: CommandInput,
  client: ApiClient | null,
  project: Project,
): Promise<readonly CompletedAgent[]> {
  if (client) return (await client.agents.list()).items;
  if (input.env["DATABASE_URL"]) return [];
  const { listLocalAgents } = await import("../local-agents.ts");
  return listLocalAgents(input, project);
}

async function findAgent(input: CommandInput, name: string): Promise<CompletedAgent | undefined> {
  const { client, project } = await connect(input);
  return client
    ? client.agents.get(name)
    : (await listAgents(input, null, project)).find((agent) => agent.name === name);
}

async function readParameters(input: CommandInput, name: string): Promise<Candidate[]> {
  const agent = await findAgent(input, name);
  const schema = agent?.parameters_schema;
  const properties: unknown = schema?.["properties"];
  if (typeof properties !== "object" || properties === null) return [];
  const required: unknown = schema?.["required"];
  return Object.entries(properties).map(([parameter, property]: [string, unknown]) => {
    const isRequired = Array.isArray(required) && required.includes(parameter);
    return toCandidate(parameter, describeParameter(property, isRequired));
  });
}

function describeParameter(property: unknown, isRequired: boolean): string {
  const description: unknown =
    typeof property === "object" && property !== null ? Reflect.get(property, "description") : null;
  return [isRequired ? "required" : "parameter", ...(typeof description === "string" ? [description] : [])].join(": ");
}

async function readParameterValues(input: CommandInput, name: string, parameter: string): Promise<Candidate[]> {
  const agent = await findAgent(input, name);
  const schema = agent?.parameters_schema;
  const types = readTypes(findProperty(schema, parameter), schema);
  const { values, kinds } = types.kinds?.has("array") ? types.items() : types;
  if (values) return values.map((value) => toCandidate(typeof value === "string" ? value : JSON.stringify(value)));
  return kinds?.has("boolean") ? [toCandidate("true"), toCandidate("false")] : [];
}

function toCandidate(value: string, description?: string | null): Candidate {
  return description === undefined || description === null ? { value } : { value, description };
}
