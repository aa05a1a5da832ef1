import { splitSearchWords } from "../../model/search-terms.ts";
import type { SearchMatch } from "../../model/search.ts";
import { all, first, type Work } from "../query.ts";

/** Text of a run, truncated to its first `maxCharacters`. */
export interface SearchableText {
  where: SearchMatch["where"];
  text: string;
}

/** Characters indexed per text. A search does not find anything after that. */
export const maxCharacters = 32_768;
/** Words per document: PostgreSQL counts positions up to 16,383. */
const maxWords = 16_000;
/** Separates texts, so that no phrase matches across them. No word contains it. */
const divider = "\ue000";

const selectTexts = `
  select substr(prompt, 1, ?2) as prompt, substr(parameters, 1, ?2) as parameters, substr(result_text, 1, ?2) as result_text,
    substr(result_data, 1, ?2) as result_data, substr(error, 1, ?2) as error
  from runs left join run_bodies on run_bodies.run_no = runs.run_no where runs.run_no = ?1`;
const selectTool = `select substr(body, 1, ?3) as body from events where run_no = ?1 and seq = ?2`;

/** Reads the texts of a document. `seq` 0 is the run itself. */
export function* readTexts(run_no: number, seq: number): Work<SearchableText[]> {
  if (seq > 0) {
    const [row] = yield first(selectTool, run_no, seq, maxCharacters);
    return typeof row?.["body"] === "string" ? [toToolText(row["body"])] : [];
  }
  const [row = {}] = yield all(selectTexts, run_no, maxCharacters);
  const texts = [
    ["prompt", row["prompt"], false],
    ["prompt", row["parameters"], true],
    ["result", row["result_text"], false],
    ["result", row["result_data"], true],
    ["error", row["error"], false],
  ] as const;
  return texts.flatMap(([where, stored, isJson]) =>
    typeof stored === "string" && stored !== "{}" ? [{ where, text: toPlainText(stored, isJson) }] : [],
  );
}

/** `body` is the beginning of a tool_use event's JSON. */
export function toToolText(body: string): SearchableText {
  try {
    // storeEvent wrote this value from a RunEvent.
    const { name, input } = JSON.parse(body) as { name?: string; input?: unknown };
    return { where: "tool_input", text: toPlainText(`${name} ${JSON.stringify(input)}`, true) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The JSON is truncated, so use everything after "input".
    return { where: "tool_input", text: toPlainText(body.slice(body.indexOf('"input":') + 8), true) };
  }
}

export function extractWords(texts: readonly SearchableText[]): string[] {
  const words: string[] = [];
  for (const { text } of texts) {
    if (words.length > 0) words.push(divider);
    for (const { word } of splitSearchWords(text, maxWords - words.length)) words.push(word);
    if (words.length >= maxWords) break;
  }
  return words;
}

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "", f: "\n" };
/** Terminal escape sequences, such as colours. They are not part of the words beside them. */
// eslint-disable-next-line no-control-regex
const terminalCodes = /\u001b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[@-Z\\-_])/g;

/** Converts a column to the text that a person reads. Text columns may be JSON strings too, see ../text.ts. */
function toPlainText(stored: string, isJson: boolean): string {
  const text = isJson || stored.startsWith('"') ? unescapeJson(stored) : stored;
  return text.includes("\u001b") ? text.replaceAll(terminalCodes, "") : text;
}

/** Replaces escapes one by one, because the JSON may be truncated anywhere. */
function unescapeJson(json: string): string {
  return json.replaceAll(
    /\\(?:u([0-9a-fA-F]{4})|(.))/gs,
    (_, code: string | undefined, character: string | undefined) =>
      code === undefined
        ? (escapes[character ?? ""] ?? character ?? "")
        : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
