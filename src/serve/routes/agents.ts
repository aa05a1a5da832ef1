import type { DefinitionFault } from "../../model/definition-fault.ts";
import { describeNameChoices, preferAvailable } from "../../model/available-agents.ts";
import type { ListedAgent } from "../../model/dispatch-ops.ts";
import type { AgentPosition } from "../../model/agent-position.ts";
import { toCursor } from "../../show/cursor.ts";
import type { ApiDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal, tooManyChecks } from "../refusal.ts";
import { createRouteBuilder } from "../route.ts";
import { admins, people, getSubject } from "../rule.ts";

const route = createRouteBuilder<ApiDeps>();

export const agentRoutes = [
  route("GET /agents", {
    // Everyone who may submit runs can see the agents.
    rule: { roles: people, attempt: true },
    async handle({ deps, query: { limit, cursor } }) {
      const { before } = parsePage("agents", limit, cursor);
      const { items, next } = await deps.agents.page(
        omitUndefined({ limit, after: before === undefined ? before : parsePosition(before) }),
      );
      return { items: items.map(flatten), next_cursor: next && toCursor("agents", formatPosition(next)) };
    },
  }),
  route("GET /agents/{name}", {
    rule: { roles: people, attempt: true },
    async handle({ deps, params: { name = "" } }) {
      const match = await deps.agents.find(name);
      if (match === null) throw notFound("agent", "path.name");
      if (!("candidates" in match)) return flatten(match);
      const available = preferAvailable(match.candidates);
      if (available.length === 1) return flatten(available[0]!);
      const names = available.map(({ agent, runner_id }) => `${agent.name}@${runner_id}`);
      throw new Refusal(409, "DROVER-API-021", `Several runners offer an agent named ${name}.`, {
        faults: names.map((candidate) => ({ path: "path.name", message: candidate })),
        next: describeNameChoices(names),
      });
    },
  }),
  route("PUT /agents/{name}", {
    rule: { roles: admins },
    async handle({ deps, principal, params: { name = "" }, body, signal }) {
      if (body.name !== undefined && body.name !== name) {
        throw new Refusal(400, "DROVER-API-006", "body.name differs from the name in the path.", {
          faults: [{ path: "body.name", message: `omit it, or use ${name}` }],
        });
      }
      const checked = await deps.checkAgent({ ...body, name }, { subject: getSubject(principal), signal });
      if (!checked.ok && checked.retryAfterSeconds !== undefined) throw tooManyChecks(checked.retryAfterSeconds);
      if (!checked.ok) throw invalidAgent(checked.faults);
      const { agent } = checked;
      await refuseFileAgent(deps.agents.find(name), name);
      await deps.agents.put(agent, getSubject(principal));
      return { ...agent, source: "api" as const, runner_id: null };
    },
  }),
  route("DELETE /agents/{name}", {
    rule: { roles: admins },
    async handle({ deps, params: { name = "" } }) {
      await refuseFileAgent(deps.agents.find(name), name);
      if (!(await deps.agents.remove(name))) throw notFound("agent", "path.name");
      return undefined;
    },
  }),
];

/** Encodes the name, which may contain any character. */
function formatPosition({ name, rank, runner_id }: AgentPosition): string {
  return [Buffer.from(name).toString("base64url"), rank, runner_id].join(".");
}

function parsePosition(text: string): AgentPosition {
  const [name = "", rank = "", ...rest] = text.split(".");
  return { name: Buffer.from(name, "base64url").toString("utf8"), rank: Number(rank), runner_id: rest.join(".") };
}

function invalidAgent(faults: readonly DefinitionFault[]): Refusal {
  const [first] = faults;
  return new Refusal(400, first!.code, `The agent definition is invalid: ${first!.message}`, {
    faults: faults.map(({ path, message }) => ({ path: path === "name" ? "path.name" : `body.${path}`, message })),
    next: first!.next,
  });
}

async function refuseFileAgent(
  lookup: Promise<ListedAgent | { candidates: ListedAgent[] } | null>,
  name: string,
): Promise<void> {
  const match = await lookup;
  if (match === null || "candidates" in match || match.source !== "file") return;
  throw new Refusal(
    409,
    "DROVER-API-020",
    `The agent ${name} is defined by a file, which takes precedence over the API.`,
    {
      faults: [{ path: "path.name", message: "defined by a file" }],
      next: "Change or remove the file, or use another name.",
    },
  );
}

function flatten({ agent, source, runner_id, fault }: ListedAgent) {
  return { ...agent, source, runner_id, ...(fault ? { fault } : {}) };
}
