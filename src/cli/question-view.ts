import type { Question } from "../model/question.ts";
import { quoteForShell } from "./shell-quote.ts";

/** The fields of a question that a person needs to decide. Both the log and the inbox have them. */
export type OpenQuestion = Pick<Question, "run_id" | "request_id" | "tool" | "input"> & {
  effect?: Question["effect"] | undefined;
};

/**
 * Escapes every character that a terminal would interpret or hide, because a person who allows a command must see all
 * of it. Keeps line breaks.
 */
export function escapeInvisible(text: string): string {
  return text.replaceAll(hiddenCharacters, (character) =>
    character === "\t" ? "\\t" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const hiddenCharacters =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Summarizes a tool's input in one line: its command, path or URL if it has one, otherwise JSON. */
export function summarizeInput(input: unknown): string {
  const line =
    findCommand(input) ?? findMainField(input) ?? (typeof input === "string" ? input : JSON.stringify(input)) ?? "";
  return escapeInvisible(line).replaceAll("\n", "\\n");
}

/** Returns the lines of the complete input: a command after `$`, or one line per field. */
export function toInputLines(input: unknown): string[] {
  const command = findCommand(input);
  const fields = isObject(input) ? Object.entries(input) : [];
  if (command !== null && fields.length === 1) return indentBlock("$ ", command);
  if (fields.length === 0) return indentBlock("", typeof input === "string" ? input : JSON.stringify(input, null, 2));
  const width = Math.max(...fields.map(([name]) => escapeInvisible(name).length));
  return fields.flatMap(([name, value]) =>
    indentBlock(
      `${escapeInvisible(name).padEnd(width)}  `,
      typeof value === "string" ? value : JSON.stringify(value, null, 2),
    ),
  );
}

export function describeEffect(effect: Question["effect"] | undefined): string {
  return effect
    ? { read: "reads", edit: "changes files", execute: "runs a program", network: "uses the network" }[effect]
    : "";
}

function indentBlock(prefix: string, text: string): string[] {
  const indent = " ".repeat(prefix.length);
  return escapeInvisible(text)
    .split("\n")
    .map((line, index) => `${index === 0 ? prefix : indent}${line}`);
}

/** Drover's own tools and those of agent clients use the same field names. */
function findCommand(input: unknown): string | null {
  if (!isObject(input)) return null;
  const { command, argv } = input;
  if (typeof command === "string") return command;
  const args = Array.isArray(command) ? command : argv;
  return Array.isArray(args) && args.length > 0 && args.every((argument) => typeof argument === "string")
    ? args.map(quoteForShell).join(" ")
    : null;
}

const mainFields = ["path", "file_path", "notebook_path", "url", "pattern", "query"];

function findMainField(input: unknown): string | null {
  if (!isObject(input)) return null;
  const value = mainFields.map((name) => input[name]).find((field) => typeof field === "string");
  return typeof value === "string" ? value : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
