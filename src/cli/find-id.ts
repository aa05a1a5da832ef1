import { RequestError } from "../model/errors.ts";
import { toCursor } from "../show/cursor.ts";
import type { ApiClient } from "../wire/client.ts";

/** Returns the only id that starts with the prefix. Throws if none or several do. */
export function findOnlyMatch(kind: string, idPrefix: string, ids: readonly string[]): string {
  const matches = idPrefix === "" ? [] : ids.filter((id) => id.startsWith(idPrefix));
  if (matches.length === 1) return matches[0]!;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message:
      matches.length > 1
        ? `More than one ${kind} starts with ${idPrefix}: ${matches.join(", ")}.`
        : `Unknown ${kind}: ${idPrefix}. It does not exist, or you have no access to it.`,
    next: `Run \`drover ${kind}s list\` to see the ${kind}s.`,
  });
}

/** Finds a run, session or token by its id or a prefix of it. `list` returns the ids of one page, newest first. */
export async function findId(
  kind: "run" | "session" | "token",
  idPrefix: string,
  list: (page: { limit: number; cursor: string }) => Promise<string[]>,
): Promise<string> {
  const isPrefix = /^[0-9a-f-]{4,36}$/.test(idPrefix);
  // Ids sort as text and contain no character above "f", so the page before `PREFIXg` starts with the matches.
  const ids = isPrefix ? await list({ limit: 3, cursor: toCursor(`${kind}s`, `${idPrefix}g`) }) : [];
  return findOnlyMatch(kind, idPrefix, ids);
}

export async function findRun(client: ApiClient, idPrefix: string) {
  return client.runs.get(await findRunId(client, idPrefix));
}

export async function findSession({ sessions }: ApiClient, idPrefix: string) {
  const list = async (page: { limit: number; cursor: string }) =>
    (await sessions.list(page)).items.map(({ session_id }) => session_id);
  return sessions.get(await findId("session", idPrefix, list));
}

export function findRunId({ runs }: Pick<ApiClient, "runs">, idPrefix: string): Promise<string> {
  return findId("run", idPrefix, async (page) => (await runs.list(page)).items.map(({ run_id }) => run_id));
}
