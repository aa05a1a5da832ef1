import { listSessions } from "../../show/pages.ts";
import { bindSchema, pageOf, sessionSchema, sessionsQuerySchema } from "../../wire/schemas.ts";
import { pageFrom } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { json, route } from "../route.ts";
import { anyone, seesOnly, submitters } from "../rule.ts";

export const sessionRoutes = [
  route({
    method: "get",
    path: "/sessions",
    rule: { roles: anyone },
    summary: "List sessions, newest first",
    query: sessionsQuerySchema,
    answers: { 200: { description: "A page of sessions", schema: pageOf(sessionSchema) } },
    async handle({ deps, principal, query: { agent_name, limit, cursor } }) {
      const filter = agent_name === undefined ? {} : { agent_name };
      return json(
        await listSessions(deps.store.read, filter, pageFrom("sessions", limit, cursor), seesOnly(principal)),
      );
    },
  }),
  route({
    method: "get",
    path: "/sessions/{session_id}",
    rule: { roles: anyone, object: "session" },
    summary: "One session",
    answers: { 200: { description: "The session", schema: sessionSchema } },
    handle: async ({ object }) => json(object),
  }),
  route({
    method: "post",
    path: "/sessions/{session_id}/bind",
    rule: { roles: submitters, object: "session" },
    summary: "Tell a session the executor's own id of it",
    body: bindSchema,
    answers: { 200: { description: "The session", schema: sessionSchema } },
    async handle({ deps, object, body: { executor_session_id } }) {
      const [bound] = await deps.store.apply([
        { op: "bind_session", session_id: object.session_id, executor_session_id },
      ]);
      if (bound.ok) return json(await deps.store.read.session(object.session_id));
      if (bound.conflict === "not_found") throw notFound("session", "path.session_id");
      throw new Refusal(409, "DROVER-API-022", "This session is bound to another executor session.", {
        faults: [{ path: "body.executor_session_id", message: "another one is bound" }],
      });
    },
  }),
];
