import { RequestError } from "../model/errors.ts";
import { toCursor } from "../show/cursor.ts";
import type { Client } from "../wire/client.ts";

/** A token's id from the beginning of it, where only one begins so. `self` is what this is asked with. */
export async function findToken(client: Client, given: string): Promise<string> {
  if (given === "self") return given;
  if (/^drve?_/.test(given))
    throw fault(
      "This is a token itself, not its id.",
      "`drover tokens list` shows the ids. Revoke this one, if it was not only you who saw it.",
    );
  const matches = /^[0-9a-f-]{4,36}$/.test(given) ? await idsBeginning(client, given) : [];
  if (matches.length === 1) return matches[0]!;
  throw fault(
    matches.length > 1
      ? `More than one token begins with ${given}: ${matches.join(", ")}.`
      : `There is no token ${given}, or it is not yours.`,
    "`drover tokens list` shows the tokens.",
  );
}

/** As for runs: no character of an id is greater than "f". */
async function idsBeginning(client: Client, prefix: string): Promise<string[]> {
  const { items } = await client.tokens.list({ limit: 3, cursor: toCursor("tokens", `${prefix}g`) });
  return items.map(({ token_id }) => token_id).filter((token_id) => token_id.startsWith(prefix));
}

function fault(message: string, next: string): RequestError {
  return new RequestError({ code: "DROVER-USE-008", field: "TOKEN", message, next });
}
