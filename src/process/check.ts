import { accessSync, constants, statSync } from "node:fs";
import { RequestError } from "../model/errors.ts";
import type { Command, Limits } from "../model/process.ts";

/** Throws a RequestError for an invalid command. Does not check whether the executable exists: starting it will tell. */
export function checkCommand(command: Command): void {
  checkWords(command);
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
        message: `${JSON.stringify(name)} cannot be the name of a variable.`,
        field: `${field}.${name}`,
        next: "Use a name without '=' and NUL, such as MY_VARIABLE.",
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
    if (value.includes("\0")) throw nulByte(`the variable ${name}`, `${field}.${name}`);
  }
}

function checkWords(command: Command): void {
  const given: unknown = command;
  if (typeof given !== "object" || given === null) throw notACommand("command", "is not a command");
  if (typeof command.executable !== "string" || command.executable.trim() === "") {
    throw new RequestError({
      code: "DROVER-USE-002",
      message: "The command is empty.",
      field: "executable",
      next: 'Name a program to run, for example: drover exec "echo hello".',
    });
  }
  if (command.executable.includes("\0")) throw nulByte("the command", "executable");
  const words: readonly unknown[] = command.arguments ?? [];
  if (!Array.isArray(words)) throw notACommand("arguments", "is not a list of strings");
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    if (typeof word !== "string") throw notACommand(`arguments[${at}]`, "is not a string");
    if (word.includes("\0")) throw nulByte(`argument ${at + 1}`, `arguments[${at}]`);
  }
}

function notACommand(field: string, what: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${field} ${what}.`,
    field,
    next: 'Give an executable and a list of arguments: { executable: "echo", arguments: ["hello"] }.',
  });
}

function checkTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isFinite(timeoutMs) && timeoutMs > 0)) return;
  throw new RequestError({
    code: "DROVER-USE-005",
    message: `The timeout must be more than zero and finite, not ${timeoutMs}.`,
    field: "timeoutMs",
    next: "Give a positive time, or none to run without a timeout.",
  });
}

function checkLimits(limits: Limits | undefined): void {
  for (const [name, value] of Object.entries(limits ?? {}) as [string, unknown][]) {
    const known = limitNames.has(name);
    if (known && (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0))) continue;
    throw new RequestError({
      code: "DROVER-USE-010",
      message: known
        ? `The limit ${name} must be a whole number above zero, not ${String(value)}.`
        : `There is no limit ${name}.`,
      field: `limits.${name}`,
      next: `Use whole numbers for any of ${[...limitNames].join(", ")}.`,
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
  if (directory.includes("\0")) throw nulByte("the working directory", "workingDirectory");
  const field = "workingDirectory";
  let isDirectory: boolean | undefined;
  try {
    isDirectory = statSync(directory, { throwIfNoEntry: false })?.isDirectory();
    if (isDirectory === true) accessSync(directory, constants.X_OK);
  } catch (cause) {
    throw new RequestError({
      code: "DROVER-USE-011",
      message: `The working directory ${directory} cannot be entered.`,
      field,
      next: "Give Drover's user permission to enter it (chmod +x), or choose another directory.",
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
      message: `The working directory ${directory} is a file.`,
      field,
      next: "Use the directory that contains it.",
    });
  }
}

function nulByte(where: string, field: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-006",
    message: `There is a NUL byte in ${where}, which the system cannot pass to a program.`,
    field,
    next: "Remove it, or pass the bytes in a file or on stdin.",
  });
}
