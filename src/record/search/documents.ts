import { searchWords } from "../../model/search-terms.ts";
import type { SearchMatch } from "../../model/search.ts";
import { all, first, type Work } from "../query.ts";

/** A text of a run that is searched; as it is stored, cut to its beginning. */
export interface SearchedText {
  where: SearchMatch["where"];
  text: string;
}

/** Of each text. What comes later is not found. */
export const mostCharacters = 32_768;
/** Of a document: PostgreSQL counts places up to 16,383. */
const mostWords = 16_000;
/** Between texts, so that no phrase is found across them. No word has it. */
const divider = "\ue000";

const selectTexts = `
  select substr(prompt, 1, ?2) as prompt, substr(parameters, 1, ?2) as parameters, substr(result_text, 1, ?2) as result_text,
    substr(result_data, 1, ?2) as result_data, substr(error, 1, ?2) as error
  from runs left join run_bodies on run_bodies.run_no = runs.run_no where runs.run_no = ?1`;
const selectTool = `select substr(body, 1, ?3) as body from events where run_no = ?1 and seq = ?2`;

/** The texts of a document; `seq` 0: those of the run itself. */
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

/** The beginning of a tool_use event's body. */
export function toolText(body: string): SearchedText {
  try {
    // Written from a RunEvent by storeEvent.
    const { name, input } = JSON.parse(body) as { name?: string; input?: unknown };
    return { where: "tool_input", text: plainText(`${name} ${JSON.stringify(input)}`, true) };
  } catch (fault) {
    if (!(fault instanceof SyntaxError)) throw fault;
    // cut: everything from its input on
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
/** Colours and the like of a terminal: the words beside them are not theirs. */
// eslint-disable-next-line no-control-regex
const terminalCodes = /\u001b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|[@-Z\\-_])/g;

/** As a person would read it. Columns may be JSON strings too, see ../text.ts. */
function plainText(stored: string, isJson: boolean): string {
  const text = isJson || stored.startsWith('"') ? unescaped(stored) : stored;
  return text.includes("\u001b") ? text.replaceAll(terminalCodes, "") : text;
}

/** One by one, as the JSON may be cut anywhere. */
function unescaped(json: string): string {
  return json.replaceAll(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, one: string | undefined) =>
    code === undefined ? (escapes[one ?? ""] ?? one ?? "") : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
