import { RequestError } from "../model/errors.ts";
import { toCursor } from "../show/cursor.ts";
import type { ApiClient } from "../wire/client.ts";

/** The one of these ids that begins with what was given. */
export function onlyMatch(kind: string, given: string, ids: readonly string[]): string {
  const matches = given === "" ? [] : ids.filter((id) => id.startsWith(given));
  if (matches.length === 1) return matches[0]!;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message:
      matches.length > 1
        ? `More than one ${kind} begins with ${given}: ${matches.join(", ")}.`
        : `There is no ${kind} ${given} here, or it is not yours.`,
    next: `\`drover ${kind}s list\` shows the ${kind}s.`,
  });
}

/** A run, session or token by its id or the beginning of it. `list` answers with the ids of one page, newest first. */
export async function findId(
  kind: "run" | "session" | "token",
  given: string,
  list: (page: { limit: number; cursor: string }) => Promise<string[]>,
): Promise<string> {
  const isPrefix = /^[0-9a-f-]{4,36}$/.test(given);
  // ids sort as text, and no character of an id is greater than "f": the page before `PREFIXg` begins with them
  const ids = isPrefix ? await list({ limit: 3, cursor: toCursor(`${kind}s`, `${given}g`) }) : [];
  return onlyMatch(kind, given, ids);
}

export async function findRun(client: ApiClient, given: string) {
  return client.runs.get(await findRunId(client, given));
}

export async function findSession({ sessions }: ApiClient, given: string) {
  const list = async (page: { limit: number; cursor: string }) =>
    (await sessions.list(page)).items.map(({ session_id }) => session_id);
  return sessions.get(await findId("session", given, list));
}

export function findRunId({ runs }: Pick<ApiClient, "runs">, given: string): Promise<string> {
  return findId("run", given, async (page) => (await runs.list(page)).items.map(({ run_id }) => run_id));
}
