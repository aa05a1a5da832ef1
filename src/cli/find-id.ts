import { findLocalUser } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { toCursor } from "../show/cursor.ts";
import type { ApiClient } from "../wire/client.ts";
import { inProcessUrl } from "../wire/transport.ts";

/** The word that stands for the caller's newest object wherever an id is expected. */
export const newestKeyword = "last";
/** How many ids the message about an ambiguous id lists. */
const maxCandidates = 3;
export const minQueryLength = 4;

type Kind = "run" | "session" | "token" | "runner" | "delivery";

/** Finds the id that equals, starts with or ends with the query. Throws if there is none or more than one. */
export function findOnlyMatch(kind: Kind, query: string, ids: readonly string[]): string {
  if (ids.includes(query)) return query;
  const isMatch = (id: string): boolean => id.startsWith(query) || id.endsWith(query);
  // Names of runners may be short. Fewer characters of an id are more likely a mistake.
  const isTooShort = query.length < (kind === "runner" ? 1 : minQueryLength);
  const matches = isTooShort ? [] : [...new Set(ids.filter(isMatch))];
  if (matches.length === 1) return matches[0]!;
  throw matches.length === 0 ? unknownId(kind, query) : ambiguousId(kind, query, matches);
}

/** Lists ids, newest first. */
type ListIds = (page: { limit: number; cursor?: string; id_suffix?: string; created_by?: string }) => Promise<string[]>;

/**
 * Finds a run or session by its id, by the beginning or the end of its id, or as `last`. Reads only a few ids: ids sort as
 * text and contain no character above "f", so the page before `QUERYg` begins with those that start with the query.
 */
async function findId(client: ApiClient, kind: "run" | "session", query: string, list: ListIds): Promise<string> {
  if (query === newestKeyword) {
    const id = await findNewest(client, list);
    if (id === undefined) throw noneYet(kind);
    return id;
  }
  if (!isPartOfId(query)) throw unknownId(kind, query);
  const [starting, ending] = await Promise.all([
    list({ limit: maxCandidates + 1, cursor: toCursor(`${kind}s`, `${query}g`) }),
    list({ limit: maxCandidates + 1, id_suffix: query }),
  ]);
  return findOnlyMatch(kind, query, [...starting, ...ending]);
}

async function findNewest(client: ApiClient, list: ListIds): Promise<string | undefined> {
  const creators = await findCallerNames(client);
  const ids = await Promise.all(
    creators === null ? [list({ limit: 1 })] : creators.map((created_by) => list({ limit: 1, created_by })),
  );
  return ids.flat().sort().at(-1);
}

/**
 * Finds the names under which the caller creates objects: the subject of the token, and the user of `drover exec`. Returns
 * null for a record that this process has opened itself, because everything in it belongs to the caller.
 */
export async function findCallerNames(client: ApiClient): Promise<string[] | null> {
  return client.url === inProcessUrl ? null : [...new Set([(await client.me()).subject, findLocalUser()])];
}

export function isPartOfId(query: string): boolean {
  return /^[0-9a-f-]{4,36}$/.test(query);
}

/** Finds the newest object that the caller has created. `items` are sorted by age, newest first. */
export async function findNewestOwn<T>(
  client: ApiClient,
  kind: Kind | "schedule",
  items: readonly T[],
  creator: (item: T) => string,
): Promise<T> {
  const names = await findCallerNames(client);
  const newest = items.find((item) => names === null || names.includes(creator(item)));
  if (newest === undefined) throw noneYet(kind);
  return newest;
}

export async function findRun(client: ApiClient, query: string) {
  return client.runs.get(await findRunId(client, query));
}

export async function findSession(client: ApiClient, query: string) {
  const list: ListIds = async (page) => (await client.sessions.list(page)).items.map(({ session_id }) => session_id);
  return client.sessions.get(await findId(client, "session", query, list));
}

export function findRunId(client: ApiClient, query: string): Promise<string> {
  return findId(client, "run", query, async (page) => (await client.runs.list(page)).items.map(({ run_id }) => run_id));
}

/** Resolves an id that filters a list. Returns an id that Drover does not know unchanged: it may come from another system. */
export async function resolveFilterId(query: string, find: (query: string) => Promise<string>): Promise<string> {
  if (query !== newestKeyword && (!isPartOfId(query) || query.length === 36)) return query;
  try {
    return await find(query);
  } catch (error) {
    if (query !== newestKeyword && error instanceof RequestError && "isUnknownId" in error) return query;
    throw error;
  }
}

class UnknownId extends RequestError {
  readonly isUnknownId = true;
}

function unknownId(kind: Kind, query: string): RequestError {
  return new UnknownId({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message: `Unknown ${kind}: ${query}. It does not exist, or you have no access to it.`,
    next: toListCommand(kind),
  });
}

function ambiguousId(kind: Kind, query: string, matches: readonly string[]): RequestError {
  const more = matches.length > maxCandidates ? " and others" : "";
  return new RequestError({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message: `More than one ${kind} starts or ends with ${query}: ${matches.slice(0, maxCandidates).join(", ")}${more}.`,
    next: "Use more characters of the id.",
  });
}

function noneYet(kind: Kind | "schedule"): RequestError {
  return new RequestError({
    code: "DROVER-USE-008",
    field: kind.toUpperCase(),
    message: `You have no ${pluralize(kind)} yet, so \`last\` does not refer to anything.`,
    next: toListCommand(kind),
  });
}

function toListCommand(kind: Kind | "schedule"): string {
  const command = kind === "delivery" ? "webhooks deliveries" : `${kind}s list`;
  return `Run \`drover ${command}\` to see the ${pluralize(kind)}.`;
}

function pluralize(kind: Kind | "schedule"): string {
  return kind === "delivery" ? "deliveries" : `${kind}s`;
}
