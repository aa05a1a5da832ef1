import { constants, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { type Profile, profileSchema } from "../model/profile.ts";
import type { Registration } from "../model/runner-port.ts";
import { suggest } from "../model/suggest.ts";
import { checkShape } from "./check-shape.ts";
import { maxDefinitionBytes } from "./definition-limits.ts";
import { requireErrorCode } from "./error-code.ts";
import { parseJson, parseYaml } from "./structured-text.ts";

export interface LoadedProfile {
  name: string;
  file: string;
  /** The runner's directory, which `command`, `module` and `agents_dir` are relative to. */
  directory: string;
  profile: Profile;
  /** Absolute; null if the profile has no agents. */
  agentsDirectory: string | null;
  /** Absolute; null if the executor is not a module. */
  module: string | null;
}

/** `absent`: the profile is valid, but the program it needs is not on this machine. */
export type ProfileResult =
  | { ok: true; profile: LoadedProfile }
  | { ok: false; faults: DefinitionFault[]; absent?: boolean };

export interface ProfileHost {
  /** The executors that need neither `command` nor `module`. */
  builtIn: readonly string[];
  /** Reports a program that a built-in executor needs and this machine lacks; null if there is none. */
  missing?(type: string, config: Profile["config"], directory: string): { message: string; next: string } | null;
  /** Whether this command can be run, found relative to the runner's directory or on PATH. */
  hasCommand(command: string, directory: string): boolean;
}

const profileEndings = new Set([".json", ".yaml", ".yml"]);

/**
 * Loads a profile by path (anything with a slash or a known extension), or by name from the first directory that has it.
 */
export function loadProfile(
  nameOrPath: string,
  searchDirectories: readonly string[],
  host: ProfileHost,
): ProfileResult {
  if (nameOrPath.includes("/") || profileEndings.has(extname(nameOrPath)))
    return readProfile(resolve(nameOrPath), host);
  for (const directory of searchDirectories) {
    const files = listProfileFiles(directory).filter((file) => getProfileName(file) === nameOrPath);
    if (files.length > 1) return { ok: false, faults: [createDuplicateFault(nameOrPath, files)] };
    if (files[0] !== undefined) return readProfile(files[0], host);
  }
  const knownNames = [...new Set(searchDirectories.flatMap(listProfileFiles).map(getProfileName))];
  const suggestion = suggest(nameOrPath, knownNames);
  const message = `profile ${nameOrPath} not found in ${searchDirectories.join(", ") || "any directory"}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`;
  const next =
    knownNames.length > 0
      ? `Known profiles: ${knownNames.join(", ")}.`
      : "Create it in a profiles/ directory; see docs/profiles.md.";
  return { ok: false, faults: [createFault("DROVER-PRF-001", null, message, next)] };
}

/** Loads all profiles of these directories. If a name occurs in several, the first directory wins, as in `loadProfile`. */
export function findProfiles(
  directories: readonly string[],
  host: ProfileHost,
): { profiles: LoadedProfile[]; faults: DefinitionFault[]; absent: DefinitionFault[] } {
  const foundNames = new Set<string>();
  const results = directories.flatMap((directory) => {
    const files = listProfileFiles(directory);
    const names = [...new Set(files.map(getProfileName))].filter((name) => !foundNames.has(name));
    return names.map((name): ProfileResult => {
      foundNames.add(name);
      const matches = files.filter((file) => getProfileName(file) === name);
      return matches.length > 1
        ? { ok: false, faults: [createDuplicateFault(name, matches)] }
        : readProfile(matches[0]!, host);
    });
  });
  return {
    profiles: results.flatMap((result) => (result.ok ? [result.profile] : [])),
    faults: results.flatMap((result) => (result.ok || result.absent ? [] : result.faults)),
    absent: results.flatMap((result) => (!result.ok && result.absent ? result.faults : [])),
  };
}

/** The part of a profile that the runner sends to the coordinator. */
export function toRegistrationExecutor({ type, command, module, config }: Profile): Registration["executor"] {
  return { type, ...(command !== undefined && { command }), ...(module !== undefined && { module }), config };
}

function readProfile(file: string, host: ProfileHost): ProfileResult {
  let text: string;
  const rejectFile = (code: ErrorCode, problem: string, next: string): ProfileResult => ({
    ok: false,
    faults: [createFault(code, file, `profile ${file} ${problem}`, next)],
  });
  try {
    const { size, mode } = statSync(file);
    // Reading a named pipe would block forever.
    if ((mode & constants.S_IFMT) !== constants.S_IFREG)
      return rejectFile("DROVER-PRF-002", "is not a regular file", "Move it out of the directory.");
    if (size > maxDefinitionBytes)
      return rejectFile("DROVER-PRF-007", `is larger than ${maxDefinitionBytes / 1024} KB`, "Make it smaller.");
    text = readFileSync(file, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const missing = requireErrorCode(error) === "ENOENT";
    const message = missing
      ? `profile ${file} not found`
      : `profile ${file} cannot be read (${requireErrorCode(error)})`;
    return {
      ok: false,
      faults: [
        createFault(
          missing ? "DROVER-PRF-001" : "DROVER-PRF-002",
          file,
          message,
          missing ? "Correct the path." : "Make it readable by this user.",
        ),
      ],
    };
  }
  const parsed = extname(file) === ".json" ? parseJson(text) : parseYaml(text);
  if (!parsed.ok) {
    const kind = extname(file) === ".json" ? "JSON" : "YAML";
    const faults = parsed.faults.map(({ line, problem, exceedsLimit }) => ({
      ...(exceedsLimit
        ? createFault("DROVER-PRF-007", file, `the file is over a limit: ${problem}`, "Make it smaller.")
        : createFault("DROVER-PRF-002", file, `the file is not valid ${kind}: ${problem}`, `Fix line ${line}.`)),
      line,
    }));
    return { ok: false, faults };
  }
  const checked = checkShape(parsed.value, shape, { ...parsed, file });
  if (!checked.ok) return checked;
  const directory = findRunnerDirectory(file);
  const profile = checked.value;
  const invalid = checkExecutor(getProfileName(file), profile, directory, host);
  if (invalid) return { ok: false, faults: [{ ...invalid, file, line: parsed.findLine([invalid.path]) }] };
  const missing = checkProgram(getProfileName(file), profile, directory, host);
  if (missing) return { ok: false, absent: true, faults: [{ ...missing, file }] };
  return {
    ok: true,
    profile: {
      name: getProfileName(file),
      file,
      directory,
      profile,
      agentsDirectory: profile.agents_dir === undefined ? null : resolve(directory, profile.agents_dir),
      module: profile.module === undefined ? null : resolve(directory, profile.module),
    },
  };
}

const shape = {
  schema: profileSchema,
  unknownKey: "DROVER-PRF-003",
  wrongValue: "DROVER-PRF-004",
  manual: "docs/profiles.md",
} as const;

/** The parent of the `profiles/` directory. For a profile file anywhere else, the directory it is in. */
function findRunnerDirectory(file: string): string {
  const directory = dirname(file);
  return basename(directory) === "profiles" ? dirname(directory) : directory;
}

function checkExecutor(
  name: string,
  { type, command, module, can }: Profile,
  directory: string,
  host: ProfileHost,
): DefinitionFault | null {
  const createKeyFault = (code: ErrorCode, path: string, message: string, next: string): DefinitionFault => ({
    ...createFault(code, null, `profile ${name}: ${message}`, next),
    path,
  });
  if (command !== undefined && module !== undefined)
    return createKeyFault(
      "DROVER-PRF-004",
      "module",
      "command and module cannot be used together",
      "Keep one of them.",
    );
  if (Object.keys(can).length > 0 && command === undefined)
    return createKeyFault(
      "DROVER-PRF-004",
      "can",
      "can is only allowed with command",
      "Remove it: other executors report their own capabilities.",
    );
  if (command !== undefined) {
    if (host.hasCommand(command, directory)) return null;
    return createKeyFault(
      "DROVER-PRF-005",
      "command",
      `command ${command} not found`,
      `Install it, or correct the path: Drover searches ${directory}, then PATH.`,
    );
  }
  if (module !== undefined) {
    if (statSync(resolve(directory, module), { throwIfNoEntry: false })?.isFile()) return null;
    return createKeyFault(
      "DROVER-PRF-005",
      "module",
      `module ${module} not found`,
      `Correct the path: it is relative to ${directory}.`,
    );
  }
  if (host.builtIn.includes(type)) return null;
  const suggestion = suggest(type, host.builtIn);
  return createKeyFault(
    "DROVER-PRF-004",
    "type",
    `unknown executor: ${type}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    `Set command or module, or use one of the types ${host.builtIn.join(", ")}.`,
  );
}

function checkProgram(
  name: string,
  { type, command, module, config }: Profile,
  directory: string,
  host: ProfileHost,
): DefinitionFault | null {
  if (command !== undefined || module !== undefined) return null;
  const missing = host.missing?.(type, config, directory) ?? null;
  return (
    missing && {
      ...createFault("DROVER-PRF-005", null, `profile ${name}: ${missing.message}`, missing.next),
      path: "type",
    }
  );
}

function listProfileFiles(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => !name.startsWith(".") && profileEndings.has(extname(name)))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    // The directory is optional.
    if (requireErrorCode(error) === "ENOENT" || requireErrorCode(error) === "ENOTDIR") return [];
    throw error;
  }
}

function getProfileName(file: string): string {
  return basename(file, extname(file));
}

function createDuplicateFault(name: string, files: readonly string[]): DefinitionFault {
  return createFault(
    "DROVER-PRF-006",
    files[0]!,
    `profile ${name} is defined more than once: ${files.join(", ")}`,
    "Rename or remove all but one.",
  );
}

function createFault(code: ErrorCode, file: string | null, message: string, next: string): DefinitionFault {
  return { code, file, line: null, path: "", message, next };
}
