import { RequestError } from "../model/errors.ts";
import type { ApiClient } from "../wire/client.ts";
import { findNewestOwn, findOnlyMatch, newestKeyword } from "./find-id.ts";

/** Finds a token's id among the newest 1,000. `self` means the token that authenticates this request. */
export async function findToken(client: ApiClient, query: string): Promise<string> {
  if (query === "self") return query;
  if (/^drve?_/.test(query))
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "TOKEN",
      message: "This is a token, not the id of a token.",
      next: "Run `drover tokens list` to see the ids. Revoke this token if anybody else may have seen it.",
    });
  const { items } = await client.tokens.list({ limit: 1000 });
  if (query === newestKeyword)
    return (await findNewestOwn(client, "token", items, (token) => token.created_by)).token_id;
  return findOnlyMatch(
    "token",
    query,
    items.map(({ token_id }) => token_id),
  );
}
