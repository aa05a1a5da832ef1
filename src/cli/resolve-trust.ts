import { closeSync, constants, openSync, readdirSync, readSync, realpathSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { isAgentFile } from "../define/load-agents.ts";
import { requireErrorCode } from "../define/error-code.ts";
import {
  declineTrust,
  isDecided,
  isEntryTrusted,
  isTrusted,
  trustDirectory,
  getTrustProblem,
} from "../define/trust.ts";
import { findProject, type Project } from "../local.ts";
import { findDefaultAgentsDirectory } from "./agents-directory.ts";
import { canAsk } from "./can-ask.ts";
import { isTerminal, tryWrite } from "./io.ts";
import { type CommandInput, readText } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { findDroverCommand } from "./drover-command.ts";

/** The files and settings that a command ignored, by the directory that has to be trusted for them. */
export type UntrustedContents = Map<string, string[]>;

/** Which directories the command reads in addition to drover.yaml. */
export interface TrustScope {
  profiles?: boolean;
  agents?: boolean;
}

/** Whether profiles have to be searched for. A profile given by path is trusted because the user named it. */
export function searchesForProfiles(profileNames: readonly string[]): boolean {
  return profileNames.length === 0 || profileNames.some((name) => !name.includes("/") && extname(name) === "");
}

/** How to reach the user. By default, messages go to stderr, and a person at a terminal is asked. */
export interface TrustReporter {
  print?: (line: string) => void;
  mayPrompt?: boolean;
}

/**
 * Asks whether to trust the directories that this command reads, or prints one line for each untrusted directory with
 * the files that are ignored. Each question is asked only once. Returns the configuration after the answers.
 */
export async function resolveTrust(
  input: CommandInput,
  project: Project,
  scope: TrustScope,
  { print = (line) => tryWrite(2, `drover: ${line}\n`), mayPrompt = true }: TrustReporter = {},
): Promise<Project> {
  let current = project;
  if (mayPrompt && canAsk(input))
    for (const [directory, contents] of findUntrusted(input, project, scope)) {
      if (isDecided(directory, input.env) || !askAboutTrust(directory, contents, input)) continue;
      current = await findProject(input.env, input.cwd);
    }
  if (!input.options["quiet"]) describeUntrusted(findUntrusted(input, current, scope), input.env).forEach(print);
  return current;
}

export function findUntrusted(
  input: Pick<CommandInput, "cwd" | "env" | "options">,
  project: Project,
  scope: TrustScope,
): UntrustedContents {
  const untrusted: UntrustedContents = new Map();
  const add = (directory: string, contents: readonly string[]): void => {
    if (contents.length > 0) untrusted.set(directory, [...(untrusted.get(directory) ?? []), ...contents]);
  };
  const { configFile } = project.locations;
  if (configFile) {
    const isTargetTrusted = isTrusted(configFile, input.env);
    const directory = isTargetTrusted ? resolveRealPath(dirname(configFile)) : dirname(resolveRealPath(configFile));
    add(directory, project.ignoredKeys);
  }
  const check = (directory: string, kind: string, matches: (name: string) => boolean): void => {
    const names = listNames(directory).filter(matches);
    if (names.length === 0 || isEntryTrusted(directory, input.env)) return;
    const parent = resolveRealPath(dirname(directory));
    const realPath = resolveRealPath(directory);
    // The target of a symbolic link has to be trusted first: trusting the directory that contains the link would not help.
    const isTargetTrusted = isTrusted(directory, input.env);
    add(isTargetTrusted || realPath === join(parent, kind) ? parent : realPath, [`${kind}/ (${names.length})`]);
  };
  if (scope.profiles && project.config.profiles === null)
    check(join(input.cwd, "profiles"), "profiles", (name) => [".json", ".yaml", ".yml"].includes(extname(name)));
  const agents = findDefaultAgentsDirectory(input, project);
  const configured = readText(input.options, "agents") ?? project.config.agents;
  if (scope.agents && agents !== null && !configured) check(agents, "agents", isAgentFile);
  return untrusted;
}

/** Returns one line for each directory, and one if the file of trusted directories is ignored. */
export function describeUntrusted(untrusted: UntrustedContents, env: CommandInput["env"]): string[] {
  if (untrusted.size === 0) return [];
  const problem = getTrustProblem(env);
  return [
    ...(problem === null ? [] : [problem]),
    ...[...untrusted].map(
      ([directory, contents]) =>
        `${directory} is not trusted: ignored ${contents.join(", ")}. Trust it with: ${findDroverCommand()} trust ${quoteForShell(directory)}`,
    ),
  ];
}

/** Asks, records the answer, and returns whether the answer is yes. The end of the input is not recorded as an answer. */
function askAboutTrust(directory: string, contents: readonly string[], { env }: CommandInput): boolean {
  discardEarlierInput();
  tryWrite(2, `${directory} is not trusted. It contains ${contents.join(", ")}.\nTrust it from now on? [y/N] `);
  const answer = readLine();
  if (answer === null) {
    tryWrite(2, "\n");
    return false;
  }
  const isTrusting = /^y(?:es)?$/i.test(answer.trim());
  if (isTrusting) trustDirectory(directory, env);
  else declineTrust(directory, env);
  return isTrusting;
}

/** Discards what was typed before the question appeared, because it does not answer the question. */
function discardEarlierInput(): void {
  let terminal: number | null = null;
  try {
    terminal = openSync("/dev/tty", constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = Buffer.alloc(4096);
    while (readSync(terminal, bytes) > 0);
  } catch (error) {
    // EAGAIN: everything has been read. Other codes: there is no controlling terminal to read from.
    requireErrorCode(error);
  } finally {
    if (terminal !== null) closeSync(terminal);
  }
}

function readLine(): string | null {
  if (!isTerminal(0)) return null;
  const byte = Buffer.alloc(1);
  const line: number[] = [];
  for (;;) {
    try {
      if (readSync(0, byte) === 0) return line.length === 0 ? null : Buffer.from(line).toString("utf8");
    } catch (error) {
      if (requireErrorCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      continue;
    }
    if (byte[0] === 10) return Buffer.from(line).toString("utf8");
    line.push(byte[0]!);
  }
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => !name.startsWith("."));
  } catch (error) {
    requireErrorCode(error);
    return [];
  }
}

function resolveRealPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    requireErrorCode(error);
    return path;
  }
}
