import { constants, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { type Profile, profileSchema } from "../model/profile.ts";
import type { Registration } from "../model/runner-port.ts";
import { suggest } from "../model/suggest.ts";
import { checkShape } from "./check-shape.ts";
import { maxDefinitionBytes } from "./definition-limits.ts";
import { errorCode } from "./error-code.ts";
import { readJson, readYaml } from "./structured-text.ts";

export interface LoadedProfile {
  name: string;
  file: string;
  /** The runner's directory, which `command`, `module` and `agents_dir` are relative to. */
  directory: string;
  profile: Profile;
  /** Absolute; null if the profile brings no agents. */
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

const endings = new Set([".json", ".yaml", ".yml"]);

/** Loads a profile by path (anything with a slash or a known extension), or by name from the first directory that has it. */
export function loadProfile(
  nameOrPath: string,
  searchDirectories: readonly string[],
  host: ProfileHost,
): ProfileResult {
  if (nameOrPath.includes("/") || endings.has(extname(nameOrPath))) return readProfile(resolve(nameOrPath), host);
  for (const directory of searchDirectories) {
    const files = listProfileFiles(directory).filter((file) => nameOf(file) === nameOrPath);
    if (files.length > 1) return { ok: false, faults: [duplicateFault(nameOrPath, files)] };
    if (files[0] !== undefined) return readProfile(files[0], host);
  }
  const knownNames = [...new Set(searchDirectories.flatMap(listProfileFiles).map(nameOf))];
  const near = suggest(nameOrPath, knownNames);
  const message = `profile ${nameOrPath} not found in ${searchDirectories.join(", ") || "any directory"}.${near ? ` Did you mean ${near}?` : ""}`;
  const next =
    knownNames.length > 0
      ? `Known profiles: ${knownNames.join(", ")}.`
      : "Create it in a profiles/ directory; see docs/profiles.md.";
  return { ok: false, faults: [fault("DROVER-PRF-001", null, message, next)] };
}

/** Loads all profiles of these directories. If a name occurs in several, the first directory wins, as in `loadProfile`. */
export function findProfiles(
  directories: readonly string[],
  host: ProfileHost,
): { profiles: LoadedProfile[]; faults: DefinitionFault[]; absent: DefinitionFault[] } {
  const seen = new Set<string>();
  const results = directories.flatMap((directory) => {
    const files = listProfileFiles(directory);
    const names = [...new Set(files.map(nameOf))].filter((name) => !seen.has(name));
    return names.map((name): ProfileResult => {
      seen.add(name);
      const matches = files.filter((file) => nameOf(file) === name);
      return matches.length > 1
        ? { ok: false, faults: [duplicateFault(name, matches)] }
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
  const rejectFile = (code: ErrorCode, problem: string): ProfileResult => ({
    ok: false,
    faults: [fault(code, file, `profile ${file} ${problem}`, "Move it out of the directory, or make it smaller.")],
  });
  try {
    const { size, mode } = statSync(file);
    // Reading a named pipe would block forever.
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) return rejectFile("DROVER-PRF-002", "is not a regular file");
    if (size > maxDefinitionBytes)
      return rejectFile("DROVER-PRF-007", `is larger than ${maxDefinitionBytes / 1024} KB`);
    text = readFileSync(file, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const missing = errorCode(error) === "ENOENT";
    const message = missing ? `profile ${file} not found` : `profile ${file} cannot be read (${errorCode(error)})`;
    return {
      ok: false,
      faults: [
        fault(
          missing ? "DROVER-PRF-001" : "DROVER-PRF-002",
          file,
          message,
          "Correct the path, or make the file readable.",
        ),
      ],
    };
  }
  const read = extname(file) === ".json" ? readJson(text) : readYaml(text);
  if (!read.ok) {
    const kind = extname(file) === ".json" ? "JSON" : "YAML";
    const faults = read.faults.map(({ line, problem, exceedsLimit }) => ({
      ...(exceedsLimit
        ? fault("DROVER-PRF-007", file, `the file is over a limit: ${problem}`, "Make it smaller.")
        : fault("DROVER-PRF-002", file, `the file is not valid ${kind}: ${problem}`, `Fix line ${line}.`)),
      line,
    }));
    return { ok: false, faults };
  }
  const checked = checkShape(read.value, shape, { ...read, file });
  if (!checked.ok) return checked;
  const directory = runnerDirectory(file);
  const profile = checked.value;
  const invalid = executorFault(nameOf(file), profile, directory, host);
  if (invalid) return { ok: false, faults: [{ ...invalid, file, line: read.lineOf([invalid.path]) }] };
  const missing = missingProgramFault(nameOf(file), profile, directory, host);
  if (missing) return { ok: false, absent: true, faults: [{ ...missing, file }] };
  return {
    ok: true,
    profile: {
      name: nameOf(file),
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
function runnerDirectory(file: string): string {
  const directory = dirname(file);
  return basename(directory) === "profiles" ? dirname(directory) : directory;
}

function executorFault(
  name: string,
  { type, command, module, can }: Profile,
  directory: string,
  host: ProfileHost,
): DefinitionFault | null {
  const keyFault = (code: ErrorCode, path: string, message: string, next: string): DefinitionFault => ({
    ...fault(code, null, `profile ${name}: ${message}`, next),
    path,
  });
  if (command !== undefined && module !== undefined)
    return keyFault("DROVER-PRF-004", "module", "command and module exclude each other", "Keep one of them.");
  if (Object.keys(can).length > 0 && command === undefined)
    return keyFault(
      "DROVER-PRF-004",
      "can",
      "can is only allowed with command",
      "Remove it: other executors report their own capabilities.",
    );
  if (command !== undefined) {
    if (host.hasCommand(command, directory)) return null;
    return keyFault(
      "DROVER-PRF-005",
      "command",
      `command ${command} not found`,
      `Install it, or correct the path: Drover searches ${directory}, then PATH.`,
    );
  }
  if (module !== undefined) {
    if (statSync(resolve(directory, module), { throwIfNoEntry: false })?.isFile()) return null;
    return keyFault(
      "DROVER-PRF-005",
      "module",
      `module ${module} not found`,
      `Correct the path: it is relative to ${directory}.`,
    );
  }
  if (host.builtIn.includes(type)) return null;
  const near = suggest(type, host.builtIn);
  return keyFault(
    "DROVER-PRF-004",
    "type",
    `unknown executor: ${type}.${near ? ` Did you mean ${near}?` : ""}`,
    `Set command or module, or one of these types: ${host.builtIn.join(", ")}.`,
  );
}

function missingProgramFault(
  name: string,
  { type, command, module, config }: Profile,
  directory: string,
  host: ProfileHost,
): DefinitionFault | null {
  if (command !== undefined || module !== undefined) return null;
  const missing = host.missing?.(type, config, directory) ?? null;
  return (
    missing && { ...fault("DROVER-PRF-005", null, `profile ${name}: ${missing.message}`, missing.next), path: "type" }
  );
}

function listProfileFiles(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => !name.startsWith(".") && endings.has(extname(name)))
      .sort()
      .map((name) => join(directory, name));
  } catch (error) {
    // The directory is optional.
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ENOTDIR") return [];
    throw error;
  }
}

function nameOf(file: string): string {
  return basename(file, extname(file));
}

function duplicateFault(name: string, files: readonly string[]): DefinitionFault {
  return fault(
    "DROVER-PRF-006",
    files[0]!,
    `profile ${name} is defined more than once: ${files.join(", ")}`,
    "Rename or remove all but one.",
  );
}

function fault(code: ErrorCode, file: string | null, message: string, next: string): DefinitionFault {
  return { code, file, line: null, path: "", message, next };
}
