import { RequestError } from "../model/errors.ts";
import type { ApiClient } from "../wire/client.ts";
import { findId } from "./find-id.ts";

/** Finds a token's id by a prefix. `self` means the token that authenticates this request. */
export async function findToken({ tokens }: ApiClient, given: string): Promise<string> {
  if (given === "self") return given;
  if (/^drve?_/.test(given))
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "TOKEN",
      message: "This is a token, not the id of a token.",
      next: "Run `drover tokens list` to see the ids. Revoke this token if anybody else may have seen it.",
    });
  return findId("token", given, async (page) => (await tokens.list(page)).items.map(({ token_id }) => token_id));
}
