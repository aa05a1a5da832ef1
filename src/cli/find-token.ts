import { RequestError } from "../model/errors.ts";
import type { ApiClient } from "../wire/client.ts";
import { findId } from "./find-id.ts";

/** Finds a token's id by a prefix. `self` means the token that authenticates this request. */
export async function findToken({ tokens }: ApiClient, prefix: string): Promise<string> {
  if (prefix === "self") return prefix;
  if (/^drve?_/.test(prefix))
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "TOKEN",
      message: "This is a token, not the id of a token.",
      next: "Run `drover tokens list` to see the ids. Revoke this token if anybody else may have seen it.",
    });
  return findId("token", prefix, async (page) => (await tokens.list(page)).items.map(({ token_id }) => token_id));
}
