import { searchWords } from "../../model/search-terms.ts";
import type { SearchMatch } from "../../model/search.ts";
import { all, first, type Work } from "../query.ts";

/** A searchable text of a run: as stored, cut to its beginning. */
export interface SearchedText {
  where: SearchMatch["where"];
  text: string;
}

/** Characters indexed per text. Anything after that is not found. */
export const mostCharacters = 32_768;
/** Words per document: PostgreSQL counts positions up to 16,383. */
const mostWords = 16_000;
/** Separates texts, so that no phrase matches across them. No word contains it. */
const divider = "\ue000";

const selectTexts = `
  select substr(prompt, 1, ?2) as prompt, substr(parameters, 1, ?2) as parameters, substr(result_text, 1, ?2) as result_text,
    substr(result_data, 1, ?2) as result_data, substr(error, 1, ?2) as error
  from runs left join run_bodies on run_bodies.run_no = runs.run_no where runs.run_no = ?1`;
const selectTool = `select substr(body, 1, ?3) as body from events where run_no = ?1 and seq = ?2`;

/** The texts of a document. `seq` 0 is the run itself. */
export function* readTexts(run_no: number, seq: number): Work<SearchedText[]> {
  if (seq > 0) {
    const [row] = yield first(selectTool, run_no, seq, mostCharacters);
    return typeof row?.["body"] === "string" ? [toolText(row["body"])] : [];
  }
  const [row = {}] = yield all(selectTexts, run_no, mostCharacters);
  const texts = [
    ["prompt", row["prompt"], false],
    ["prompt", row["parameters"], true],
    ["result", row["result_text"], false],
    ["result", row["result_data"], true],
    ["error", row["error"], false],
  ] as const;
  return texts.flatMap(([where, stored, isJson]) =>
    typeof stored === "string" && stored !== "{}" ? [{ where, text: plainText(stored, isJson) }] : [],
  );
}

/** Reads the beginning of a tool_use event's body. */
export function toolText(body: string): SearchedText {
  try {
    // storeEvent wrote it from a RunEvent.
    const { name, input } = JSON.parse(body) as { name?: string; input?: unknown };
    return { where: "tool_input", text: plainText(`${name} ${JSON.stringify(input)}`, true) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The JSON is cut off: take everything after "input".
    return { where: "tool_input", text: plainText(body.slice(body.indexOf('"input":') + 8), true) };
  }
}

export function wordsOfTexts(texts: readonly SearchedText[]): string[] {
  const words: string[] = [];
  for (const { text } of texts) {
    if (words.length > 0) words.push(divider);
    for (const { word } of searchWords(text, mostWords - words.length)) words.push(word);
    if (words.length >= mostWords) break;
  }
  return words;
}

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "", f: "\n" };
/** Terminal escape sequences, such as colours. They are not part of the words beside them. */
// eslint-disable-next-line no-control-regex
const terminalCodes = /\u001b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[@-Z\\-_])/g;

/** The text as a person reads it. Columns may be JSON strings too, see ../text.ts. */
function plainText(stored: string, isJson: boolean): string {
  const text = isJson || stored.startsWith('"') ? unescaped(stored) : stored;
  return text.includes("\u001b") ? text.replaceAll(terminalCodes, "") : text;
}

/** Replaces escapes one by one, because the JSON may be cut off anywhere. */
function unescaped(json: string): string {
  return json.replaceAll(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, one: string | undefined) =>
    code === undefined ? (escapes[one ?? ""] ?? one ?? "") : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
