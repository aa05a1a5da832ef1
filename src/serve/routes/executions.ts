import { listExecutions } from "../../show/pages.ts";
import { executionSchema, executionsQuerySchema, pageOf } from "../../wire/schemas.ts";
import { pageFrom } from "../page.ts";
import { json, route } from "../route.ts";
import { anyone, seesOnly } from "../rule.ts";

export const executionRoutes = [
  route({
    method: "get",
    path: "/executions",
    rule: { roles: anyone },
    summary: "List the audit records of spawned processes, newest first",
    query: executionsQuerySchema,
    answers: { 200: { description: "A page of executions", schema: pageOf(executionSchema) } },
    async handle({ deps, principal, query: { limit, cursor, run_id, open } }) {
      const filter = { ...(run_id === undefined ? {} : { run_id }), ...(open === undefined ? {} : { open }) };
      return json(
        await listExecutions(
          deps.store.read,
          filter,
          pageFrom("executions", limit, cursor),
          seesOnly(principal),
          deps.owners,
        ),
      );
    },
  }),
  route({
    method: "get",
    path: "/executions/{execution_id}",
    rule: { roles: anyone, object: "execution" },
    summary: "One execution",
    answers: { 200: { description: "The execution", schema: executionSchema } },
    handle: async ({ object }) => json(object),
  }),
];
