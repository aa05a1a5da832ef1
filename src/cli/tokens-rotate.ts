import { recordDirectory } from "../model/state-layout.ts";
import { findLocal } from "../local.ts";
import { replaceTokenFile } from "../serve/token-file.ts";
import { readAnnouncement } from "./announcement.ts";
import { connectOrFail } from "./connect.ts";
import { findToken } from "./find-token.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { readTimeSpan } from "./read-time-span.ts";

export const tokensRotate: CommandSpec = {
  name: "tokens rotate",
  summary: "a new token with the role, subject, label and lifetime of an old one, which ends a little later",
  takes: "TOKEN",
  arity: [1, 1],
  examples: [
    ["drover tokens rotate 019a3f0e-7c1b", "the old one is good for 5 more minutes"],
    ["drover tokens rotate self --overlap 1h", "the one this is asked with, which is good for one more hour"],
    ["drover tokens rotate 019a3f0e-7c1b --at-once", "somebody has seen it: refused from now on"],
  ],
  options: {
    overlap: { value: "TIME", about: "how long the old one is still good, such as 10m or 1d (default 5m, at most 7d)" },
    "at-once": { about: "the old one is refused from now on" },
  },
  run: rotateToken,
};

async function rotateToken(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const overlap = readOverlap(input);
  const client = await connectOrFail(input);
  const token_id = await findToken(client, positionals[0]!);
  const made = await client.tokens.rotate(token_id, overlap);
  write(1, options["json"] ? jsonLine(made) : `${made.token}\n`);
  const { replaces } = made;
  const kept = replaces.asked_with ? await keepInFile(input, made.token) : null;
  if (options["quiet"]) return 0;
  write(2, `This is the only time it is shown. ${replaces.token_id} is refused from ${replaces.ends_at} on.\n`);
  if (kept) write(2, `${kept} holds the new one now.\n`);
  return 0;
}

/** Where this was asked with the state directory's own token, that file is what all commands here read. */
async function keepInFile(input: CommandInput, token: string): Promise<string | null> {
  if (input.env["DROVER_API_URL"] || input.env["DROVER_API_KEY"]) return null;
  const { places } = await findLocal(input.env, input.cwd);
  return replaceTokenFile(
    recordDirectory(places.stateDirectory),
    token,
    readAnnouncement(places.stateDirectory)?.token_file,
  );
}

function readOverlap({ options }: CommandInput): { overlap_seconds?: number } {
  const given = text(options, "overlap");
  if (options["at-once"]) {
    if (given !== undefined)
      throw usage("--overlap and --at-once say two different things: give one.", "tokens rotate", "--overlap");
    return { overlap_seconds: 0 };
  }
  if (given === undefined) return {};
  const ms = readTimeSpan(given, "overlap", "tokens rotate", { text: "7d", ms: 604_800_000 });
  return { overlap_seconds: Math.ceil(ms / 1000) };
}
