import { suggest } from "../model/suggest.ts";
import { type TokenRole, tokenRoles } from "../model/token.ts";
import type { NewToken } from "../wire/client.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, type OptionSpec, readText, usageError } from "./options.ts";
import { readTimeSpan } from "./read-time-span.ts";
import { findDroverCommand } from "./drover-command.ts";

const tokenOptions: Record<string, OptionSpec> = {
  subject: { placeholder: "S", description: "the user or machine that the token is for, instead of SUBJECT" },
  label: { placeholder: "T", description: "a note on what the token is for" },
};

export const tokensCreate: CommandSpec = {
  name: "tokens create",
  summary: "create a token and print it once",
  placeholders: "SUBJECT",
  arity: [0, 1],
  examples: [
    ["drover tokens create ada --expires-in 30d", "for a user, who can see and stop their own runs"],
    ["drover tokens create '*' --role viewer --label dashboard", "can see everything and change nothing"],
    ["drover tokens create ops --role admin --json", "as JSON, with its id"],
  ],
  options: {
    ...tokenOptions,
    role: { placeholder: "R", choices: tokenRoles, description: `one of ${tokenRoles.join(", ")} (default: user)` },
    "expires-in": { placeholder: "TIME", description: "lifetime, such as 12h or 30d (default: no expiry)" },
  },
  run: (input) => create(input, { role: readRole(input), ...readExpiry(input, null) }),
};

export const tokensEnrol: CommandSpec = {
  name: "tokens enrol",
  summary: "create a one-time token that a runner exchanges for its own token",
  placeholders: "SUBJECT",
  arity: [0, 1],
  examples: [
    ["drover tokens enrol build-host", "then, on that host: DROVER_ENROLMENT=drve_... drover runner -x PROFILE"],
    [
      "drover tokens enrol build-host --expires-in 15m --label rack-7",
      "valid for 15 minutes; the runner's token gets the label",
    ],
  ],
  options: {
    ...tokenOptions,
    "expires-in": {
      placeholder: "TIME",
      description: "how long the token can be used, such as 15m or 7d (default: 1d)",
    },
  },
  run: (input) => create(input, { role: "runner", enrolment: true, ...readExpiry(input, "1d") }),
};

async function create(input: CommandInput, settings: Omit<NewToken, "subject">): Promise<number> {
  const { options } = input;
  const { enrolment = false } = settings;
  const command = enrolment ? "tokens enrol" : "tokens create";
  const subject = readSubject(input, command);
  const label = readText(options, "label");
  const client = await connectOrFail(input);
  const token = await client.tokens.create({ ...settings, subject, ...(label ? { label } : {}) });
  write(1, options["json"] ? toJsonLine(token) : `${token.token}\n`);
  if (options["quiet"]) return 0;
  const usageHint = enrolment
    ? `Use it once, on the runner's host: DROVER_API_URL=${client.url} DROVER_ENROLMENT=... drover runner -x PROFILE\n`
    : "";
  write(
    2,
    `The token is not shown again. To revoke it later: ${findDroverCommand()} tokens revoke ${token.token_id}\n${usageHint}`,
  );
  return 0;
}

function readSubject({ options, positionals }: CommandInput, command: string): string {
  const [positional] = positionals;
  const option = readText(options, "subject");
  if (positional !== undefined && option !== undefined)
    throw usageError(`The subject was passed twice: ${positional} and --subject ${option}.`, command, "--subject");
  const subject = positional ?? option;
  if (subject) return subject;
  throw usageError(
    `${command} needs SUBJECT: the name of the user or machine that the token is for.`,
    command,
    "SUBJECT",
  );
}

function readRole({ options }: CommandInput): TokenRole {
  const roleName = readText(options, "role") ?? "user";
  const role = tokenRoles.find((known) => known === roleName);
  if (role) return role;
  const suggestion = suggest(roleName, tokenRoles);
  throw usageError(
    `--role ${roleName} is not one of ${tokenRoles.join(", ")}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    "tokens create",
    "--role",
  );
}

function readExpiry({ options }: CommandInput, fallback: string | null): Pick<NewToken, "expires_at"> {
  const lifetime = readText(options, "expires-in") ?? fallback;
  if (lifetime === null) return {};
  const ms = readTimeSpan(lifetime, "expires-in", fallback === null ? "tokens create" : "tokens enrol", maxLifetime);
  return { expires_at: new Date(Date.now() + ms).toISOString() };
}

const maxLifetime = { text: "100 years", ms: 36_500 * 86_400_000 };
