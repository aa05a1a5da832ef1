import { listSessions } from "../../show/pages.ts";
import { bindSchema, pageOf, sessionSchema, sessionsQuerySchema, sessionWithRunsSchema } from "../../wire/schemas.ts";
import { pageFrom } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { json, noContent, route } from "../route.ts";
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
    summary: "One session and its runs",
    answers: { 200: { description: "The session, its newest run first", schema: sessionWithRunsSchema } },
    handle: async ({ deps, object }) =>
      json({ ...object, versions: await deps.store.read.versions(object.session_id) }),
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
  route({
    method: "delete",
    path: "/sessions/{session_id}",
    rule: { roles: submitters, object: "session" },
    summary: "End a session: it can no longer be continued, and its runner removes its folders",
    answers: { 204: { description: "It is gone; its runs stay" } },
    async handle({ deps, object }) {
      const [deleted] = await deps.store.apply([{ op: "delete_session", session_id: object.session_id }]);
      if (deleted.ok) return noContent();
      if (deleted.conflict === "not_found") throw notFound("session", "path.session_id");
      throw new Refusal(409, "DROVER-API-030", "A run of this session has not ended.", {
        faults: [{ path: "path.session_id", message: "has a run that has not ended" }],
        next: "Stop it first, or wait.",
      });
    },
  }),
];
