import { recordDirectory } from "../model/state-layout.ts";
import { findProject } from "../local.ts";
import { replaceTokenFile } from "../serve/token-file.ts";
import { readAnnouncement } from "./announcement.ts";
import { connectOrFail } from "./connect.ts";
import { findToken } from "./find-token.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { readTimeSpan } from "./read-time-span.ts";

export const tokensRotate: CommandSpec = {
  name: "tokens rotate",
  summary: "replace a token with a new one of the same role, subject, label and lifetime",
  placeholders: "TOKEN",
  arity: [1, 1],
  examples: [
    ["drover tokens rotate 5c20e9d4", "the old token stays valid for 5 minutes"],
    ["drover tokens rotate self --overlap 1h", "the token you are using, which stays valid for one hour"],
    ["drover tokens rotate 5c20e9d4 --at-once", "for a leaked token: revoke the old one immediately"],
  ],
  options: {
    overlap: {
      placeholder: "TIME",
      description: "how long the old token stays valid, such as 10m or 1d (default: 5m, at most 7d)",
    },
    "at-once": { description: "revoke the old token immediately" },
  },
  run: rotateToken,
};

async function rotateToken(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const overlap = readOverlap(input);
  const client = await connectOrFail(input);
  const token_id = await findToken(client, positionals[0]!);
  const newToken = await client.tokens.rotate(token_id, overlap);
  write(1, options["json"] ? toJsonLine(newToken) : `${newToken.token}\n`);
  const { replaces } = newToken;
  const file = replaces.asked_with ? await updateTokenFile(input, newToken.token) : null;
  if (options["quiet"]) return 0;
  write(2, `The token is not shown again. The old token ${replaces.token_id} is valid until ${replaces.ends_at}.\n`);
  if (file) write(2, `Stored the new token in ${file}.\n`);
  return 0;
}

/** If this command used the token file of the state directory, replaces its content, because other commands read it. */
async function updateTokenFile(input: CommandInput, token: string): Promise<string | null> {
  if (input.env["DROVER_API_URL"] || input.env["DROVER_API_KEY"]) return null;
  const { locations } = await findProject(input.env, input.cwd);
  return replaceTokenFile(
    recordDirectory(locations.stateDirectory),
    token,
    readAnnouncement(locations.stateDirectory)?.token_file,
  );
}

function readOverlap({ options }: CommandInput): { overlap_seconds?: number } {
  const overlap = readText(options, "overlap");
  if (options["at-once"]) {
    if (overlap !== undefined)
      throw usageError("--overlap and --at-once cannot be used together.", "tokens rotate", "--overlap");
    return { overlap_seconds: 0 };
  }
  if (overlap === undefined) return {};
  const ms = readTimeSpan(overlap, "overlap", "tokens rotate", { text: "7d", ms: 604_800_000 });
  return { overlap_seconds: Math.ceil(ms / 1000) };
}
