import { first, write, type Row, type Work } from "../query.ts";

const selectGrants = `select granted_tools from sessions where session_id = ?`;
const setGrants = `update sessions set granted_tools = ? where session_id = ?`;

/** Allows a tool for the rest of a session. `session` is the encoded id. */
export function* grantTool(session: string, tool: string): Work<void> {
  const [row = {}] = yield first(selectGrants, session);
  const granted = parseGrants(row);
  if (!granted.includes(tool)) yield write(setGrants, JSON.stringify([...granted, tool]), session);
}

/** Tools that a person allowed for the rest of the session. */
export function parseGrants({ granted_tools }: Row): string[] {
  // grantTool wrote this value.
  return typeof granted_tools === "string" ? (JSON.parse(granted_tools) as string[]) : [];
}
