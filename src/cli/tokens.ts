import { tokenRoles } from "../model/token.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { writeTable } from "./table.ts";

export const tokensList: CommandSpec = {
  name: "tokens list",
  summary: "who may do what (never the tokens themselves)",
  takes: "",
  words: [0, 0],
  examples: [["drover tokens list", ""]],
  options: {},
  run: listTokens,
};

export const tokensCreate: CommandSpec = {
  name: "tokens create",
  summary: "a new token, shown once",
  takes: "SUBJECT",
  words: [1, 1],
  examples: [
    ["drover tokens create ada --role user --days 30", "for a person"],
    ["drover tokens create build-host --enrol", "used once, by a runner, to get its own"],
  ],
  options: {
    role: { value: "R", about: `one of ${tokenRoles.join(", ")} (default user)` },
    days: { value: "N", about: "expires after so many days (default never)" },
    label: { value: "T", about: "what it is for" },
    enrol: { about: "a token a runner exchanges once for its own" },
  },
  run: createToken,
};

export const tokensRevoke: CommandSpec = {
  name: "tokens revoke",
  summary: "ends a token at once",
  takes: "TOKEN_ID",
  words: [1, 1],
  examples: [["drover tokens revoke tok_1f2e", ""]],
  options: {},
  run: revokeToken,
};

async function listTokens(input: CommandInput): Promise<number> {
  const { items } = await (await connectOrFail(input)).tokens.list();
  if (input.options["json"]) {
    for (const token of items) write(1, `${JSON.stringify(token)}\n`);
    return 0;
  }
  const rows = items.map((token) => [
    token.token_id,
    token.role,
    token.subject,
    token.expires_at ?? "never",
    token.revoked_at ? "revoked" : "valid",
    token.label ?? "",
  ]);
  writeTable(["ID", "ROLE", "SUBJECT", "EXPIRES", "STATE", "LABEL"], rows);
  return 0;
}

async function createToken(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const subject = positionals[0]!;
  const enrolment = options["enrol"] === true;
  const wanted = text(options, "role") ?? (enrolment ? "runner" : "user");
  const role = tokenRoles.find((one) => one === wanted);
  if (!role) throw usage(`--role ${wanted} is not one of ${tokenRoles.join(", ")}.`, "tokens create", "--role");
  const days = text(options, "days");
  if (days !== undefined && !(Number(days) > 0))
    throw usage(`--days ${days} is not a positive number.`, "tokens create", "--days");
  const label = text(options, "label");
  const made = await (
    await connectOrFail(input)
  ).tokens.create({
    role,
    subject,
    ...(label ? { label } : {}),
    ...(days ? { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() } : {}),
    ...(enrolment ? { enrolment } : {}),
  });
  write(1, options["json"] ? `${JSON.stringify(made)}\n` : `${made.token}\n`);
  if (!options["quiet"])
    write(2, `This is the only time it is shown. Take it back: drover tokens revoke ${made.token_id}\n`);
  return 0;
}

async function revokeToken(input: CommandInput): Promise<number> {
  const id = input.positionals[0]!;
  await (await connectOrFail(input)).tokens.revoke(id);
  if (!input.options["quiet"]) write(2, `${id} is revoked.\n`);
  return 0;
}
