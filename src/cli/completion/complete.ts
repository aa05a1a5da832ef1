import { closeSync, openSync } from "node:fs";
import { write } from "../io.ts";
import type { CommandInput } from "../options.ts";
import { findCandidates } from "./find-candidates.ts";
import { createValueReader } from "./read-values.ts";

/** How long a completion may wait for a coordinator or for the record. */
const defaultBudgetMs = 1000;

/**
 * Prints the candidates for the last word, one per line, with a tab before the description. The completion scripts call
 * this for every Tab, so it never starts anything, never waits long, and prints no errors.
 */
export async function complete(words: readonly string[]): Promise<never> {
  // The shell shows stderr in the middle of the line that the user is typing.
  closeSync(2);
  openSync("/dev/null", "w");
  const env = { ...process.env };
  const budgetMs = Number(env["DROVER_COMPLETE_MS"]) || defaultBudgetMs;
  const input: CommandInput = {
    options: { quiet: true, "no-input": true },
    positionals: [],
    rest: null,
    extraOptions: [],
    env,
    cwd: process.cwd(),
  };
  const candidates = await findCandidates(words, createValueReader(input, budgetMs));
  const lines = candidates.map(
    ({ value, description }) => `${toOneLine(value)}${description ? `\t${toOneLine(description)}` : ""}\n`,
  );
  write(1, lines.join(""));
  process.exit(0);
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
