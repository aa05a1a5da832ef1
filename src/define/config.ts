import { constants, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Config, defaultConfig } from "../model/config.ts";
import { configSchema } from "../model/config-schema.ts";
import { describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { checkShape } from "./check-shape.ts";
import { narrowConfig } from "./narrow-config.ts";
import { maxDefinitionBytes } from "./definition-limits.ts";
import { readYaml } from "./structured-text.ts";

/** Reads and checks a drover.yaml. Every fault names the file, the line and the key. */
export function loadConfig(file: string): Config {
  const read = readYaml(readConfig(file));
  if (!read.ok) {
    const { line, problem, isLimit } = read.faults[0]!;
    if (isLimit) throw pastLimit(file, line, problem);
    throw new RequestError({
      code: "DROVER-CFG-002",
      field: `${file}:${line}`,
      message: `${file}:${line} is not valid YAML: ${problem}`,
      next: `Fix line ${line}; \`drover doctor\` checks the file again.`,
    });
  }
  const checked = checkShape(read.value ?? {}, shape, { ...read, file });
  if (checked.ok) {
    const { agents, profiles } = checked.value;
    // paths are relative to the real file: a link to a trusted file must not pull in the directory of the link
    const directory = dirname(realpathSync.native(file));
    const beside = (path: string | null): string | null => path && resolve(directory, path);
    return { ...checked.value, agents: beside(agents), profiles: beside(profiles) };
  }
  const [first] = checked.faults;
  throw new RequestError({
    code: first!.code,
    field: first!.path || file,
    message: checked.faults.map(describeFault).join("\n"),
    next: first!.next,
  });
}

/** Loads only the settings of an untrusted file that restrict Drover further. An invalid file is ignored entirely. */
export function loadUntrustedConfig(file: string): { config: Config; leftOut: string[] } {
  try {
    const { config, leftOut } = narrowConfig(loadConfig(file));
    return { config, leftOut: leftOut.map((key) => `${key} of drover.yaml`) };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { config: defaultConfig, leftOut: [`drover.yaml, which is invalid [${error.code}]`] };
  }
}

const shape = {
  schema: configSchema,
  unknownKey: "DROVER-CFG-003",
  wrongValue: "DROVER-CFG-004",
  manual: 'docs/commands.md, "Configuration",',
} as const;

function readConfig(file: string): string {
  try {
    // reading a named pipe would block until somebody writes to it
    const { size, mode } = statSync(file);
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw unreadable(file, "it is not a file");
    if (size > maxDefinitionBytes) throw pastLimit(file, 1, `it is larger than ${maxDefinitionBytes / 1024} KB`);
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof RequestError) throw cause;
    throw unreadable(file, cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error", cause);
  }
}

function unreadable(file: string, why: string, cause?: unknown): RequestError {
  return new RequestError({
    code: "DROVER-CFG-001",
    field: file,
    message: `${file} cannot be read (${why}).`,
    next: "Make it a file that this user can read, or move it away to run with the defaults.",
    cause,
  });
}

function pastLimit(file: string, line: number, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-CFG-005",
    field: `${file}:${line}`,
    message: `${file}:${line} is over a limit: ${problem}`,
    next: "Make it smaller.",
  });
}
