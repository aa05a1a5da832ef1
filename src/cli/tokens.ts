import { RequestError } from "../model/errors.ts";
import { getTokenRejection, type Token } from "../model/token.ts";
import type { ApiClient } from "../wire/client.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { connectOrFail } from "./connect.ts";
import { findToken } from "./find-token.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readLimit, readText, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { type Cell, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const tokensList: CommandSpec = {
  name: "tokens list",
  summary: "list API tokens, without their secrets",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover tokens list", "the latest 50; users see only their own"],
    ["drover tokens list --json", "as JSON lines"],
  ],
  options: {
    limit: { placeholder: "N", description: "page size (default: 50, at most 1000)" },
    cursor: { placeholder: "C", description: "start at the cursor that the previous page printed" },
  },
  run: listTokens,
};

export const tokensRevoke: CommandSpec = {
  name: "tokens revoke",
  summary: "revoke tokens immediately, and close their event streams and runner connections",
  placeholders: "[TOKEN...]",
  arity: [0, Infinity],
  examples: [
    ["drover tokens revoke 5c20e9d4", "by id, or by its beginning or end"],
    ["drover tokens revoke self", "the token you are using"],
    ["drover tokens revoke --subject ada", "all tokens of ada"],
  ],
  options: { subject: { placeholder: "S", description: "all valid tokens of this subject" } },
  run: revokeTokens,
};

async function listTokens(input: CommandInput): Promise<number> {
  const { options } = input;
  const limit = readLimit(options, "tokens list");
  const cursor = readText(options, "cursor");
  const page = await (await connectOrFail(input)).tokens.list({ limit, ...(cursor ? { cursor } : {}) });
  if (options["json"]) for (const token of page.items) write(1, toJsonLine(token));
  else {
    const now = new Date();
    writeTable(
      ["ID", "ROLE", "SUBJECT", "STATE", "ENDS", "CREATED", "LABEL"],
      page.items.map((token) => toCells(token, now)),
    );
  }
  if (page.next_cursor && !options["quiet"])
    write(2, `More: ${findDroverCommand()} tokens list --limit ${limit} --cursor ${quoteForShell(page.next_cursor)}\n`);
  return 0;
}

function toCells(token: Token, now: Date): Cell[] {
  const ends = [token.expires_at, token.revoked_at].filter((at) => at !== null).sort()[0];
  return [
    { id: token.token_id },
    token.kind === "access" ? token.role : token.kind,
    token.subject,
    toStatusCell(token.used_at === null ? (getTokenRejection(token, now.toISOString()) ?? "valid") : "used"),
    ends === undefined ? "never" : toTimeCell(ends, now),
    toTimeCell(token.created_at, now),
    token.label ?? "-",
  ];
}

async function revokeTokens(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const subject = readText(options, "subject");
  if (positionals.length === 0 && subject === undefined)
    throw usageError("Specify the tokens to revoke, or pass --subject.", "tokens revoke", "TOKEN");
  const client = await connectOrFail(input);
  const ids: string[] = [];
  // Find all tokens before the first is revoked, so that a wrong id revokes nothing.
  for (const query of positionals) ids.push(await findToken(client, query));
  const revokedIds = new Set<string>();
  const onRevoked = (token_id: string): void => {
    if (revokedIds.has(token_id)) return;
    revokedIds.add(token_id);
    write(1, options["json"] ? toJsonLine({ token_id, revoked: true }) : `${token_id}\n`);
  };
  await revokeOthers(
    client,
    [...new Set(ids)].filter((id) => id !== "self"),
    onRevoked,
  );
  if (subject !== undefined) (await client.tokens.revokeSubject(subject)).revoked.forEach(onRevoked);
  // Revoke the token of this command last, because no request works after that.
  if (ids.includes("self")) {
    await revokeSelf(client, revokedIds.size > 0);
    onRevoked("self");
  }
  if (!options["quiet"]) write(2, revokedIds.size === 0 ? `${subject} has no valid tokens.\n` : "Revoked.\n");
  return 0;
}

async function revokeOthers(client: ApiClient, ids: readonly string[], onRevoked: (id: string) => void): Promise<void> {
  for (const [index, token_id] of ids.entries()) {
    try {
      await client.tokens.revoke(token_id);
    } catch (error) {
      if (index === 0 || !isInvalidToken(error)) throw error;
      throw new RequestError({
        code: "DROVER-API-010",
        field: "TOKEN",
        message: `You have revoked the token that you are using. Not revoked: ${ids.slice(index).join(", ")}.`,
        next: "Revoke the others with another token. Pass your own token as self, so that it is revoked last.",
        cause: error,
      });
    }
    onRevoked(token_id);
  }
}

/** Also succeeds if this token was among those already revoked. */
async function revokeSelf(client: ApiClient, hasRevokedOthers: boolean): Promise<void> {
  try {
    await client.tokens.revoke("self");
  } catch (error) {
    if (!hasRevokedOthers || !isInvalidToken(error)) throw error;
  }
}

function isInvalidToken(error: unknown): boolean {
  return error instanceof RequestError && error.code === "DROVER-API-010";
}
