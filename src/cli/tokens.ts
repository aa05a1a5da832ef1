import { endOf, type Token } from "../model/token.ts";
import { connectOrFail } from "./connect.ts";
import { findToken } from "./find-token.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, type ParsedOptions, text, usage } from "./options.ts";
import { quoted } from "./quoted.ts";
import { age, writeTable } from "./table.ts";

export const tokensList: CommandSpec = {
  name: "tokens list",
  summary: "who may do what (never the tokens themselves)",
  takes: "",
  words: [0, 0],
  examples: [
    ["drover tokens list", "the latest 50; for a user, their own"],
    ["drover tokens list --json", "as JSON lines"],
  ],
  options: {
    limit: { value: "N", about: "how many (default 50, at most 1000)" },
    cursor: { value: "C", about: "the next page, as the last one said" },
  },
  run: listTokens,
};

export const tokensRevoke: CommandSpec = {
  name: "tokens revoke",
  summary: "ends tokens at once, and with them what is open: streams of events, waiting runners",
  takes: "[TOKEN...]",
  words: [0, Infinity],
  examples: [
    ["drover tokens revoke 019a3f0e-7c1b", "by its id, or the beginning of it"],
    ["drover tokens revoke self", "the one this is asked with"],
    ["drover tokens revoke --subject ada", "everything that ada has"],
  ],
  options: { subject: { value: "S", about: "every token of this subject that has not ended" } },
  run: revokeTokens,
};

async function listTokens(input: CommandInput): Promise<number> {
  const { options } = input;
  const limit = readLimit(options);
  const cursor = text(options, "cursor");
  const page = await (await connectOrFail(input)).tokens.list({ limit, ...(cursor ? { cursor } : {}) });
  if (options["json"]) for (const token of page.items) write(1, `${JSON.stringify(token)}\n`);
  else {
    const now = new Date();
    writeTable(
      ["ID", "ROLE", "SUBJECT", "STATE", "ENDS", "CREATED", "LABEL"],
      page.items.map((token) => cells(token, now)),
    );
  }
  if (page.next_cursor && !options["quiet"])
    write(2, `More: drover tokens list --limit ${limit} --cursor ${quoted(page.next_cursor)}\n`);
  return 0;
}

function cells(token: Token, now: Date): string[] {
  return [
    token.token_id,
    token.kind === "enrolment" ? "enrolment" : token.role,
    token.subject,
    token.used_at === null ? (endOf(token, now.toISOString()) ?? "valid") : "used",
    [token.expires_at, token.revoked_at].filter((at) => at !== null).sort()[0] ?? "never",
    age(token.created_at, now),
    token.label ?? "-",
  ];
}

async function revokeTokens(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const subject = text(options, "subject");
  if (positionals.length === 0 && subject === undefined)
    throw usage("Name the tokens to revoke, or give --subject.", "tokens revoke", "TOKEN");
  const client = await connectOrFail(input);
  const ids: string[] = [];
  // all are found before the first is gone
  for (const given of positionals) ids.push(await findToken(client, given));
  for (const token_id of new Set(ids)) await client.tokens.revoke(token_id);
  if (subject !== undefined) ids.push(...(await client.tokens.revokeOf(subject)).revoked);
  for (const token_id of new Set(ids))
    write(1, options["json"] ? `${JSON.stringify({ token_id, revoked: true })}\n` : `${token_id}\n`);
  if (!options["quiet"])
    write(2, ids.length === 0 ? `${subject} has no token that has not ended.\n` : "Revoked: refused from now on.\n");
  return 0;
}

function readLimit(options: ParsedOptions): number {
  const given = text(options, "limit");
  if (given === undefined) return 50;
  const limit = Number(given);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit;
  throw usage(`--limit ${given} is not a whole number from 1 to 1000.`, "tokens list", "--limit");
}
