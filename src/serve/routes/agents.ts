import { z } from "zod";
import type { Agent } from "../../model/agent.ts";
import type { ListedAgent } from "../../model/dispatch-ops.ts";
import { agentSchema, listedAgentSchema, pageOf } from "../../wire/schemas.ts";
import { check } from "../check.ts";
import type { ServeDeps } from "../deps.ts";
import { notFound, Refusal } from "../refusal.ts";
import { json, noContent, route } from "../route.ts";
import { admins, anyone, subjectOf } from "../rule.ts";

/** The name is in the path; saying it again is no fault, saying another is. */
const putBody = agentSchema.extend({
  name: agentSchema.shape.name.optional(),
  type: agentSchema.shape.type.optional(),
});

export const agentRoutes = [
  route({
    method: "get",
    path: "/agents",
    rule: { roles: anyone },
    summary: "List agents: of files, put by the API, and brought by runners",
    answers: { 200: { description: "All of them", schema: pageOf(listedAgentSchema) } },
    handle: async ({ deps }) => json({ items: (await deps.agents.list()).map(flat), next_cursor: null }),
  }),
  route({
    method: "get",
    path: "/agents/{name}",
    rule: { roles: anyone },
    summary: "One agent, by its name or as name@runner",
    answers: { 200: { description: "The agent", schema: listedAgentSchema } },
    async handle({ deps, params: { name = "" } }) {
      const found = await deps.agents.find(name);
      if (found === null) throw notFound("agent", "path.name");
      if (!("candidates" in found)) return json(flat(found));
      const names = found.candidates.map((one) => `${name}@${one.runner_id}`);
      throw new Refusal(409, "DROVER-API-021", `More than one runner brings ${name}.`, {
        faults: names.map((candidate) => ({ path: "path.name", message: candidate })),
        next: `Name one of them: ${names.join(", ")}.`,
      });
    },
  }),
  route({
    method: "put",
    path: "/agents/{name}",
    rule: { roles: admins },
    summary: "Make or replace an agent",
    body: putBody,
    answers: { 200: { description: "The agent", schema: listedAgentSchema } },
    async handle({ deps, principal, params: { name = "" }, body }) {
      if (body.name !== undefined && body.name !== name) {
        throw new Refusal(400, "DROVER-API-006", "body.name is not the name in the path.", {
          faults: [{ path: "body.name", message: `leave it out, or say ${name}` }],
        });
      }
      check(z.object({ name: agentSchema.shape.name }), { name }, "path");
      const type = body.type ?? (body.command === null ? undefined : "procedural");
      const agent = check(agentSchema, { ...body, name, ...(type ? { type } : {}) }, "body");
      await refuseBadSchemas(agent, deps);
      await refuseFileAgent(deps.agents.find(name), name);
      await deps.agents.put(agent, subjectOf(principal));
      return json({ ...agent, source: "api", runner_id: null });
    },
  }),
  route({
    method: "delete",
    path: "/agents/{name}",
    rule: { roles: admins },
    summary: "Remove an agent that the API has put; its runs keep theirs",
    answers: { 204: { description: "Removed" } },
    async handle({ deps, params: { name = "" } }) {
      await refuseFileAgent(deps.agents.find(name), name);
      if (!(await deps.agents.remove(name))) throw notFound("agent", "path.name");
      return noContent();
    },
  }),
];

/** Told when the agent is put, not at its first run. */
async function refuseBadSchemas(agent: Agent, deps: ServeDeps): Promise<void> {
  for (const key of ["parameters_schema", "output_schema"] as const) {
    const schema = agent[key];
    const faults = schema === undefined ? [] : await deps.checkSchema(schema);
    if (faults.length === 0) continue;
    throw new Refusal(400, "DROVER-AGT-006", `body.${key} is not a schema that can be used: ${faults[0]!.message}`, {
      faults: faults.map(({ path, message }) => ({ path: `body.${key}${path}`, message })),
    });
  }
}

async function refuseFileAgent(
  finding: Promise<ListedAgent | { candidates: ListedAgent[] } | null>,
  name: string,
): Promise<void> {
  const found = await finding;
  if (found === null || "candidates" in found || found.source !== "file") return;
  throw new Refusal(409, "DROVER-API-020", `The agent ${name} is defined by a file, which goes before the API.`, {
    faults: [{ path: "path.name", message: "defined by a file" }],
    next: "Change or remove the file, or use another name.",
  });
}

function flat({ agent, source, runner_id }: ListedAgent) {
  return { ...agent, source, runner_id };
}
