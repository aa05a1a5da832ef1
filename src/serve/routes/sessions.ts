import { listSessions } from "../../show/pages.ts";
import { readSessionTree } from "../../show/session-tree.ts";
import type { RecordDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { createRouteBuilder } from "../route.ts";
import { people, getVisibleOwner, submitters } from "../rule.ts";

const route = createRouteBuilder<RecordDeps>();

export const sessionRoutes = [
  route("GET /sessions", {
    rule: { roles: people },
    handle: ({ deps, principal, query: { limit, cursor, ...filter } }) =>
      listSessions(
        deps.store.read,
        omitUndefined(filter),
        parsePage("sessions", limit, cursor),
        getVisibleOwner(principal),
      ),
  }),
  route("GET /sessions/{session_id}", {
    rule: { roles: people, object: "session" },
    handle: async ({ deps, object, principal }) => ({
      ...object,
      versions: await deps.store.read.versions(object.session_id),
      ...(await readSessionTree(deps.store.read, object, getVisibleOwner(principal))),
    }),
  }),
  route("POST /sessions/{session_id}/bind", {
    rule: { roles: submitters, object: "session" },
    async handle({ deps, object, body: { executor_session_id } }) {
      const [bound] = await deps.store.apply([
        { op: "bind_session", session_id: object.session_id, executor_session_id },
      ]);
      if (bound.ok) return (await deps.store.read.session(object.session_id)) ?? object;
      if (bound.conflict === "not_found") throw notFound("session", "path.session_id");
      throw new Refusal(409, "DROVER-API-022", "This session is already bound to another executor session.", {
        faults: [{ path: "body.executor_session_id", message: "another id is bound" }],
      });
    },
  }),
  route("DELETE /sessions/{session_id}", {
    rule: { roles: submitters, object: "session" },
    async handle({ deps, object }) {
      const [deleted] = await deps.store.apply([{ op: "delete_session", session_id: object.session_id }]);
      if (deleted.ok) return undefined;
      if (deleted.conflict === "not_found") throw notFound("session", "path.session_id");
      throw new Refusal(
        409,
        "DROVER-API-030",
        "The session cannot be deleted, because one of its runs has not ended.",
        {
          faults: [{ path: "path.session_id", message: "has a run that has not ended" }],
          next: "Stop the run first, or wait until it ends.",
        },
      );
    },
  }),
];
