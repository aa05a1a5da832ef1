import { RequestError } from "../model/errors.ts";
import type { ApiClient } from "../wire/client.ts";
import { findId } from "./find-id.ts";

/** A token's id from the beginning of it, where only one begins so. `self` is what this is asked with. */
export async function findToken({ tokens }: ApiClient, given: string): Promise<string> {
  if (given === "self") return given;
  if (/^drve?_/.test(given))
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "TOKEN",
      message: "This is a token itself, not its id.",
      next: "`drover tokens list` shows the ids. Revoke this one, if it was not only you who saw it.",
    });
  return findId("token", given, async (page) => (await tokens.list(page)).items.map(({ token_id }) => token_id));
}
