import type { Question } from "../model/question.ts";
import { shellQuote } from "./shell-quote.ts";

/** What of a question a person needs to decide it; the log and the inbox both have it. */
export type Asked = Pick<Question, "run_id" | "request_id" | "tool" | "input"> & {
  effect?: Question["effect"] | undefined;
};

/**
 * Every character as it is, with those that a terminal would obey or hide written out: a person who decides about a
 * command must see all of it. Line breaks stay.
 */
export function visible(text: string): string {
  return text.replaceAll(unseen, (one) =>
    one === "\t" ? "\\t" : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// oxlint-disable-next-line no-control-regex
const unseen = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** What the tool would do, in one line: a command, a path or an address; else the input as JSON. */
export function shortInput(input: unknown): string {
  const line =
    commandOf(input) ?? mainField(input) ?? (typeof input === "string" ? input : JSON.stringify(input)) ?? "";
  return visible(line).replaceAll("\n", "\\n");
}

/** All of the input, nothing left out: a command after `$`, else a line for each field. */
export function inputLines(input: unknown): string[] {
  const command = commandOf(input);
  const fields = isObject(input) ? Object.entries(input) : [];
  if (command !== null && fields.length === 1) return block("$ ", command);
  if (fields.length === 0) return block("", typeof input === "string" ? input : JSON.stringify(input, null, 2));
  const width = Math.max(...fields.map(([name]) => visible(name).length));
  return fields.flatMap(([name, value]) =>
    block(`${visible(name).padEnd(width)}  `, typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  );
}

export function effectWords(effect: Question["effect"] | undefined): string {
  return effect
    ? { read: "reads", edit: "changes files", execute: "runs something", network: "uses the network" }[effect]
    : "";
}

function block(before: string, text: string): string[] {
  const indent = " ".repeat(before.length);
  return visible(text)
    .split("\n")
    .map((line, at) => `${at === 0 ? before : indent}${line}`);
}

/** The tools of clients and our own name it alike. */
function commandOf(input: unknown): string | null {
  if (!isObject(input)) return null;
  const { command, argv } = input;
  if (typeof command === "string") return command;
  const words = Array.isArray(command) ? command : argv;
  return Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string")
    ? words.map(shellQuote).join(" ")
    : null;
}

const mainFields = ["path", "file_path", "notebook_path", "url", "pattern", "query"];

function mainField(input: unknown): string | null {
  if (!isObject(input)) return null;
  const value = mainFields.map((name) => input[name]).find((one) => typeof one === "string");
  return typeof value === "string" ? value : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
