import { suggest } from "../model/suggest.ts";
import { type TokenRole, tokenRoles } from "../model/token.ts";
import type { NewToken } from "../wire/client.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, type OptionSpec, text, usage } from "./options.ts";
import { readTimeSpan } from "./read-time-span.ts";

const tokenOptions: Record<string, OptionSpec> = {
  subject: { value: "S", about: "whose requests these are; may stand without --subject" },
  label: { value: "T", about: "what it is for" },
};

export const tokensCreate: CommandSpec = {
  name: "tokens create",
  summary: "a new token, shown once",
  takes: "SUBJECT",
  arity: [0, 1],
  examples: [
    ["drover tokens create ada --expires-in 30d", "for a person, who sees and stops their own runs"],
    ["drover tokens create '*' --role viewer --label dashboard", "sees everything, changes nothing"],
    ["drover tokens create ops --role admin --json", "with its id and the rest"],
  ],
  options: {
    ...tokenOptions,
    role: { value: "R", about: `one of ${tokenRoles.join(", ")} (default user)` },
    "expires-in": { value: "TIME", about: "how long it is good, such as 12h or 30d (default for ever)" },
  },
  run: (input) => create(input, { role: readRole(input), ...readEnd(input, null) }),
};

export const tokensEnrol: CommandSpec = {
  name: "tokens enrol",
  summary: "a token that a runner exchanges, once, for one of its own",
  takes: "SUBJECT",
  arity: [0, 1],
  examples: [
    ["drover tokens enrol build-host", "there: DROVER_ENROLMENT=drve_... drover runner -x PROFILE"],
    ["drover tokens enrol build-host --expires-in 15m --label rack-7", "to be used soon; its own has the same label"],
  ],
  options: {
    ...tokenOptions,
    "expires-in": { value: "TIME", about: "until when it can be used, such as 15m or 7d (default 1d)" },
  },
  run: (input) => create(input, { role: "runner", enrolment: true, ...readEnd(input, "1d") }),
};

async function create(input: CommandInput, wanted: Omit<NewToken, "subject">): Promise<number> {
  const { options } = input;
  const { enrolment = false } = wanted;
  const command = enrolment ? "tokens enrol" : "tokens create";
  const subject = readSubject(input, command);
  const label = text(options, "label");
  const client = await connectOrFail(input);
  const made = await client.tokens.create({ ...wanted, subject, ...(label ? { label } : {}) });
  write(1, options["json"] ? jsonLine(made) : `${made.token}\n`);
  if (options["quiet"]) return 0;
  const use = enrolment
    ? `There, once: DROVER_API_URL=${client.url} DROVER_ENROLMENT=... drover runner -x PROFILE\n`
    : "";
  write(2, `This is the only time it is shown. Take it back: drover tokens revoke ${made.token_id}\n${use}`);
  return 0;
}

function readSubject({ options, positionals }: CommandInput, command: string): string {
  const [word] = positionals;
  const option = text(options, "subject");
  if (word !== undefined && option !== undefined)
    throw usage(`The subject is given twice: ${word} and --subject ${option}.`, command, "--subject");
  const subject = word ?? option;
  if (subject) return subject;
  throw usage(`${command} needs SUBJECT: the name of the person or machine it is for.`, command, "SUBJECT");
}

function readRole({ options }: CommandInput): TokenRole {
  const wanted = text(options, "role") ?? "user";
  const role = tokenRoles.find((one) => one === wanted);
  if (role) return role;
  const near = suggest(wanted, tokenRoles);
  throw usage(
    `--role ${wanted} is not one of ${tokenRoles.join(", ")}.${near ? ` Did you mean ${near}?` : ""}`,
    "tokens create",
    "--role",
  );
}

function readEnd({ options }: CommandInput, otherwise: string | null): Pick<NewToken, "expires_at"> {
  const given = text(options, "expires-in") ?? otherwise;
  if (given === null) return {};
  const ms = readTimeSpan(given, "expires-in", otherwise === null ? "tokens create" : "tokens enrol", longest);
  return { expires_at: new Date(Date.now() + ms).toISOString() };
}

const longest = { text: "100 years", ms: 36_500 * 86_400_000 };
