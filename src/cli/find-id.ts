import { RequestError } from "../model/errors.ts";
import { toCursor } from "../show/cursor.ts";
import type { ApiClient } from "../wire/client.ts";

/** The only id that starts with the given prefix. */
export function onlyMatch(kind: string, given: string, ids: readonly string[]): string {
  const matches = given === "" ? [] : ids.filter((id) => id.startsWith(given));
  if (matches.length === 1) return matches[0]!;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message:
      matches.length > 1
        ? `More than one ${kind} starts with ${given}: ${matches.join(", ")}.`
        : `There is no ${kind} ${given}, or you have no access to it.`,
    next: `Run \`drover ${kind}s list\` to see the ${kind}s.`,
  });
}

/** Finds a run, session or token by its id or a prefix of it. `list` returns the ids of one page, newest first. */
export async function findId(
  kind: "run" | "session" | "token",
  given: string,
  list: (page: { limit: number; cursor: string }) => Promise<string[]>,
): Promise<string> {
  const isPrefix = /^[0-9a-f-]{4,36}$/.test(given);
  // Ids sort as text and contain no character above "f", so the page before `PREFIXg` starts with the matches.
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
