import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const agentContracts = {
  "GET /agents": {
    id: "listAgents",
    summary: "List agents from files, from the API and from runners",
    query: schemas.fullPageQuerySchema,
    responses: ok("A page of agents, by name", schemas.createPageSchema(schemas.listedAgentSchema)),
  },
  "GET /agents/{name}": {
    id: "getAgent",
    summary: "Get an agent by name or by name@runner",
    responses: {
      200: { description: "The agent", schema: schemas.listedAgentSchema },
      404: { description: "No such agent" },
      409: { description: "Several runners offer an agent with this name" },
    },
  },
  "PUT /agents/{name}": {
    id: "putAgent",
    summary: "Create or replace an agent",
    body: schemas.putAgentSchema,
    responses: {
      200: { description: "The agent", schema: schemas.listedAgentSchema },
      409: { description: "A file defines an agent with this name" },
    },
  },
  "DELETE /agents/{name}": {
    id: "deleteAgent",
    summary: "Delete an agent that was created through the API; its runs keep their copy",
    responses: {
      204: { description: "Deleted" },
      404: { description: "No such agent" },
      409: { description: "A file defines this agent" },
    },
  },
  "GET /sessions": {
    id: "listSessions",
    summary: "List sessions, newest first",
    query: schemas.sessionsQuerySchema,
    responses: ok("A page of sessions", schemas.createPageSchema(schemas.sessionSchema)),
  },
  "GET /sessions/{session_id}": {
    id: "getSession",
    summary: "Get a session and its runs",
    responses: ok("The session with its runs, newest first", schemas.sessionWithRunsSchema),
  },
  "POST /sessions/{session_id}/bind": {
    id: "bindSession",
    summary: "Record the executor's own id for a session",
    body: schemas.bindSessionSchema,
    responses: {
      200: { description: "The session", schema: schemas.sessionSchema },
      409: { description: "The session is bound to another executor session" },
    },
  },
  "DELETE /sessions/{session_id}": {
    id: "deleteSession",
    summary:
      "Delete a session, but not its runs: it can no longer be continued, and its runner removes its directories",
    responses: {
      204: { description: "Deleted; its runs are kept" },
      409: { description: "A run of this session has not ended" },
    },
  },
} as const satisfies Record<string, Contract>;
