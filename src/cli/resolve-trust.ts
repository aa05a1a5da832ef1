import { readdirSync, readSync, realpathSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { isAgentFile } from "../define/load-agents.ts";
import { errorCode } from "../define/error-code.ts";
import { declineTrust, isDecided, isTrusted, trustDirectory, trustProblem } from "../define/trust.ts";
import { findLocal, type Local } from "../local.ts";
import { defaultAgentsDirectory } from "./agents-directory.ts";
import { canAsk } from "./can-ask.ts";
import { isTerminal, tryWrite } from "./io.ts";
import { type CommandInput, text } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";

/** What a command would have read and did not, by the folder that is to be trusted for it. */
export type Untrusted = Map<string, string[]>;

/** Which folders the command looks into, beside drover.yaml. */
export interface TrustScope {
  profiles?: boolean;
  agents?: boolean;
}

/** A profile given by its path is named, and trusted by that; every other one is looked for. */
export function searchesForProfiles(wanted: readonly string[]): boolean {
  return wanted.length === 0 || wanted.some((name) => !name.includes("/") && extname(name) === "");
}

/** How the person is reached: by default on stderr, with a question where somebody can answer it. */
export interface TrustReporting {
  tell?: (line: string) => void;
  asks?: boolean;
}

/**
 * Asks once whether to trust what this command finds by looking, or says in one line a folder what it leaves out.
 * Returns what there is after the answer.
 */
export async function resolveTrust(
  input: CommandInput,
  local: Local,
  looks: TrustScope,
  { tell = (line) => tryWrite(2, `drover: ${line}\n`), asks = true }: TrustReporting = {},
): Promise<Local> {
  let now = local;
  if (asks && canAsk(input))
    for (const [folder, things] of findUntrusted(input, local, looks)) {
      if (isDecided(folder, input.env) || !ask(folder, things, input)) continue;
      now = await findLocal(input.env, input.cwd);
    }
  if (!input.options["quiet"]) describeUntrusted(findUntrusted(input, now, looks), input.env).forEach(tell);
  return now;
}

export function findUntrusted(
  input: Pick<CommandInput, "cwd" | "env" | "options">,
  local: Local,
  looks: TrustScope,
): Untrusted {
  const found: Untrusted = new Map();
  const add = (folder: string, things: readonly string[]): void => {
    if (things.length > 0) found.set(folder, [...(found.get(folder) ?? []), ...things]);
  };
  const { configFile } = local.places;
  if (configFile) add(dirname(realOr(configFile)), local.leftOut);
  const look = (folder: string, kind: string, isMeant: (name: string) => boolean): void => {
    const names = namesIn(folder).filter(isMeant);
    if (names.length === 0 || isTrusted(folder, input.env)) return;
    const parent = realOr(dirname(folder));
    const real = realOr(folder);
    // a link leads elsewhere: to trust the folder it lies in would not help
    add(real === join(parent, kind) ? parent : real, [`${kind}/ (${names.length})`]);
  };
  if (looks.profiles && local.config.profiles === null)
    look(join(input.cwd, "profiles"), "profiles", (name) => [".json", ".yaml", ".yml"].includes(extname(name)));
  const agents = defaultAgentsDirectory(input, local);
  const named = text(input.options, "agents") ?? local.config.agents;
  if (looks.agents && agents !== null && !named) look(agents, "agents", isAgentFile);
  return found;
}

/** One line for each folder, and one where the file of trusted folders is not used. */
export function describeUntrusted(found: Untrusted, env: CommandInput["env"]): string[] {
  if (found.size === 0) return [];
  const problem = trustProblem(env);
  return [
    ...(problem === null ? [] : [problem]),
    ...[...found].map(
      ([folder, things]) =>
        `${folder} is not trusted: left out ${things.join(", ")}. Trust it with: drover trust ${shellQuote(folder)}`,
    ),
  ];
}

/** Only an answer is recorded: somebody who ends the input has not decided. */
function ask(folder: string, things: readonly string[], { env }: CommandInput): boolean {
  tryWrite(2, `${folder} is not trusted. It brings ${things.join(", ")}.\nUse them from now on? [y/N] `);
  const answer = readLine();
  if (answer === null) return false;
  const yes = /^y(?:es)?$/i.test(answer.trim());
  if (yes) trustDirectory(folder, env);
  else declineTrust(folder, env);
  return yes;
}

function readLine(): string | null {
  if (!isTerminal(0)) return null;
  const byte = Buffer.alloc(1);
  const line: number[] = [];
  for (;;) {
    try {
      if (readSync(0, byte) === 0) return line.length === 0 ? null : Buffer.from(line).toString("utf8");
    } catch (error) {
      if (errorCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      continue;
    }
    if (byte[0] === 10) return Buffer.from(line).toString("utf8");
    line.push(byte[0]!);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => !name.startsWith("."));
  } catch (error) {
    errorCode(error);
    return [];
  }
}

function realOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    errorCode(error);
    return path;
  }
}
