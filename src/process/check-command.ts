import { accessSync, constants, statSync } from "node:fs";
import { RequestError } from "../model/errors.ts";
import type { Command, Limits } from "../model/process.ts";

/** Throws a RequestError if the command is invalid. Does not check that the executable exists; starting it does that. */
export function checkCommand(command: Command): void {
  checkArguments(command);
  checkVariables(command.environment, "environment");
  checkTimeout(command.timeoutMs);
  checkLimits(command.limits);
  checkDirectory(command.workingDirectory);
}

export function checkVariables(variables: Readonly<Record<string, string>> | undefined, field: string): void {
  for (const name in variables) {
    if (name === "" || name.includes("=") || name.includes("\0")) {
      throw new RequestError({
        code: "DROVER-USE-009",
        message: `${JSON.stringify(name)} is not a valid variable name.`,
        field: `${field}.${name}`,
        next: "Use a non-empty name without '=' or NUL bytes, such as MY_VARIABLE.",
      });
    }
    const value: unknown = variables[name];
    if (typeof value !== "string") {
      throw new RequestError({
        code: "DROVER-USE-009",
        message: `The variable ${name} is not a string.`,
        field: `${field}.${name}`,
        next: "Pass every variable as a string.",
      });
    }
    if (value.includes("\0")) throw nulByte(`The variable ${name}`, `${field}.${name}`);
  }
}

function checkArguments(command: Command): void {
  const input: unknown = command;
  if (typeof input !== "object" || input === null) throw invalidCommand("command", "The command must be an object.");
  if (typeof command.executable !== "string" || command.executable.trim() === "") {
    throw new RequestError({
      code: "DROVER-USE-002",
      message: "The command is empty.",
      field: "executable",
      next: 'Specify a program to run, for example: drover exec "echo hello".',
    });
  }
  if (command.executable.includes("\0")) throw nulByte("The command", "executable");
  const args: readonly unknown[] = command.arguments ?? [];
  if (!Array.isArray(args)) throw invalidCommand("arguments", "The arguments must be a list of strings.");
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    const field = `arguments[${index}]`;
    if (typeof argument !== "string") throw invalidCommand(field, `Argument ${index + 1} is not a string.`);
    if (argument.includes("\0")) throw nulByte(`Argument ${index + 1}`, field);
  }
}

function invalidCommand(field: string, message: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message,
    field,
    next: 'Pass an executable and a list of arguments: { executable: "echo", arguments: ["hello"] }.',
  });
}

function checkTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isFinite(timeoutMs) && timeoutMs > 0)) return;
  throw new RequestError({
    code: "DROVER-USE-005",
    message: `The timeout must be a positive, finite number of milliseconds, not ${timeoutMs}.`,
    field: "timeoutMs",
    next: "Set a positive timeout, or omit it to run without one.",
  });
}

function checkLimits(limits: Limits | undefined): void {
  for (const [name, value] of Object.entries(limits ?? {}) as [string, unknown][]) {
    const isKnown = limitNames.has(name);
    if (isKnown && (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0))) continue;
    throw new RequestError({
      code: "DROVER-USE-010",
      message: isKnown
        ? `The limit ${name} must be a positive whole number, not ${String(value)}.`
        : `Unknown limit: ${name}.`,
      field: `limits.${name}`,
      next: `Valid limits are ${[...limitNames].join(", ")}; each takes a positive whole number.`,
    });
  }
}

const limitNames: ReadonlySet<string> = new Set<keyof Limits>([
  "cpuSeconds",
  "fileSizeBytes",
  "openFiles",
  "memoryBytes",
  "processes",
  "diskBytes",
  "files",
]);

function checkDirectory(directory: string | undefined): void {
  if (directory === undefined) return;
  if (directory.includes("\0")) throw nulByte("The working directory", "workingDirectory");
  const field = "workingDirectory";
  let isDirectory: boolean | undefined;
  try {
    isDirectory = statSync(directory, { throwIfNoEntry: false })?.isDirectory();
    if (isDirectory === true) accessSync(directory, constants.X_OK);
  } catch (cause) {
    throw new RequestError({
      code: "DROVER-USE-011",
      message: `Drover has no permission to enter the working directory ${directory}.`,
      field,
      next: "Grant execute permission on it to the user that runs Drover, or choose another directory.",
      cause,
    });
  }
  if (isDirectory === undefined) {
    throw new RequestError({
      code: "DROVER-USE-003",
      message: `The working directory ${JSON.stringify(directory)} does not exist.`,
      field,
      next: "Create it, or choose another directory.",
    });
  }
  if (!isDirectory) {
    throw new RequestError({
      code: "DROVER-USE-004",
      message: `The working directory ${directory} is not a directory.`,
      field,
      next: "Choose a directory.",
    });
  }
}

function nulByte(subject: string, field: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-006",
    message: `${subject} contains a NUL byte, which the operating system does not allow.`,
    field,
    next: "Remove it, or pass the data in a file or on stdin.",
  });
}
