import { constants, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Config, defaultConfig } from "../model/config.ts";
import { configSchema } from "../model/config-schema.ts";
import { describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { checkShape } from "./check-shape.ts";
import { narrowConfig } from "./narrow-config.ts";
import { maxDefinitionBytes } from "./definition-limits.ts";
import { parseYaml } from "./structured-text.ts";

/** Reads and checks a drover.yaml. Every fault has the file, the line and the key. */
export function loadConfig(file: string): Config {
  const parsed = parseYaml(readConfig(file));
  if (!parsed.ok) {
    const { line, problem, exceedsLimit } = parsed.faults[0]!;
    if (exceedsLimit) throw createLimitError(file, line, problem);
    throw new RequestError({
      code: "DROVER-CFG-002",
      field: `${file}:${line}`,
      message: `${file}:${line} is not valid YAML: ${problem}`,
      next: `Fix line ${line}; \`drover doctor\` checks the file again.`,
    });
  }
  const checked = checkShape(parsed.value ?? {}, shape, { ...parsed, file });
  if (checked.ok) {
    const { agents, profiles } = checked.value;
    // Paths are relative to the real file, so that a link to a trusted file cannot pull in the directory of the link.
    const directory = dirname(realpathSync.native(file));
    const resolvePath = (path: string | null): string | null => path && resolve(directory, path);
    return { ...checked.value, agents: resolvePath(agents), profiles: resolvePath(profiles) };
  }
  const [first] = checked.faults;
  throw new RequestError({
    code: first!.code,
    field: first!.path || file,
    message: checked.faults.map(describeFault).join("\n"),
    next: first!.next,
  });
}

/**
 * Loads only the settings of an untrusted file that are stricter than the defaults. An invalid file is ignored entirely.
 */
export function loadUntrustedConfig(file: string): { config: Config; ignoredKeys: string[] } {
  try {
    const { config, ignoredKeys } = narrowConfig(loadConfig(file));
    return { config, ignoredKeys: ignoredKeys.map((key) => `${key} of drover.yaml`) };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { config: defaultConfig, ignoredKeys: [`drover.yaml, which is invalid [${error.code}]`] };
  }
}

const shape = {
  schema: configSchema,
  unknownKey: "DROVER-CFG-003",
  wrongValue: "DROVER-CFG-004",
  manual: "docs/configuration.md",
} as const;

function readConfig(file: string): string {
  try {
    // Reading a named pipe would block until another process writes to it.
    const { size, mode } = statSync(file);
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw createUnreadableError(file, "it is not a regular file");
    if (size > maxDefinitionBytes) throw createLimitError(file, 1, `it is larger than ${maxDefinitionBytes / 1024} KB`);
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw createUnreadableError(
      file,
      error instanceof Error && "code" in error ? String(error.code) : "unknown error",
      error,
    );
  }
}

function createUnreadableError(file: string, reason: string, cause?: unknown): RequestError {
  return new RequestError({
    code: "DROVER-CFG-001",
    field: file,
    message: `${file} cannot be read (${reason}).`,
    next: "Replace it with a file that this user can read, or remove it to run with the defaults.",
    cause,
  });
}

function createLimitError(file: string, line: number, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-CFG-005",
    field: `${file}:${line}`,
    message: `${file}:${line} is over a limit: ${problem}`,
    next: "Make it smaller.",
  });
}
