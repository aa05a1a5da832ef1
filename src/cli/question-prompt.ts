import type { RunEvent } from "../model/event.ts";
import type { Decision } from "../model/executor.ts";
import { RequestError } from "../model/errors.ts";
import { type Asked, effectWords, inputLines, visible } from "./question-view.ts";
import { createEditor, type Editor } from "./terminal/editor.ts";
import type { Key } from "./terminal/keys.ts";
import type { Live } from "./terminal/screen.ts";
import type { Style } from "./terminal/style.ts";

/** Where a person answers the questions of a run, one after the other. */
export interface QuestionPrompt {
  readonly isAsking: boolean;
  ask(question: Asked): void;
  /** The log says what became of one; perhaps somebody else has answered it. */
  decided(event: Extract<RunEvent, { type: "permission_decision" }>): void;
  /** The run has ended, or a new attempt of it has begun: nobody waits for an answer. */
  clear(): void;
  /** false: the key was not meant for it. Somebody who is typing when a question appears does not answer it by that. */
  handle(key: Key): boolean;
  /** What stands at the bottom while a question is open. */
  show(columns: number): Live | null;
}

export interface QuestionPromptOptions {
  agent: string;
  answer(question: Asked, decision: Decision): Promise<unknown>;
  /** A line that stays. */
  tell(line: string): void;
  /** What `show` returns has changed. */
  changed(): void;
  style: Style;
  /** How long nobody must have pressed a key before one counts as an answer. */
  quietMs?: number;
}

type Mode = { name: "choose" } | { name: "reason" | "edit"; editor: Editor; fault?: string } | { name: "sending" };
type Decided = Parameters<QuestionPrompt["decided"]>[0];

/** More than this is shown when it is asked for. */
const mostLines = 30;

export function createQuestionPrompt({
  agent,
  answer,
  tell,
  changed,
  style,
  quietMs = 400,
}: QuestionPromptOptions): QuestionPrompt {
  let open: Asked[] = [];
  let mode: Mode = { name: "choose" };
  /** Arrived while our own answer was on its way: whose it is, is not known yet. */
  let decidedMeanwhile: Decided | null = null;
  let isArmed = false;
  let arming: NodeJS.Timeout | null = null;

  function arm(): void {
    if (arming) clearTimeout(arming);
    isArmed = false;
    arming = setTimeout(() => {
      isArmed = true;
      changed();
    }, quietMs);
  }

  function next(): void {
    mode = { name: "choose" };
    decidedMeanwhile = null;
    if (arming) clearTimeout(arming);
    const [first] = open;
    if (first) {
      present(first);
      arm();
    }
    changed();
  }

  function present({ tool, input, effect }: Asked): void {
    const about = effectWords(effect);
    tell(
      `${style.yellow("?")} ${style.bold(visible(agent))} asks to use ${style.bold(visible(tool))}${about ? style.dim(` (${about})`) : ""}`,
    );
    const lines = inputLines(input);
    for (const line of lines.slice(0, mostLines)) tell(`    ${line}`);
    if (lines.length > mostLines) tell(style.dim(`    … ${lines.length - mostLines} more lines: press v to see all`));
  }

  function showAll({ input }: Asked): void {
    for (const line of inputLines(input)) tell(`    ${line}`);
  }

  async function send(decision: Decision): Promise<void> {
    const question = open[0]!;
    mode = { name: "sending" };
    changed();
    try {
      await answer(question, decision);
      tell(`  ${outcome(decision.decision, decision.decision === "allow" ? null : decision.message, style)}`);
      if (decision.decision === "allow" && decision.input !== undefined)
        for (const line of inputLines(decision.input)) tell(`    ${line}`);
      if (decision.decision === "allow" && decision.remember) tell(style.dim("  and always in this session"));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const bad = error instanceof RequestError && isBadInput(error);
      if (bad && open[0] === question) {
        mode =
          decision.decision === "allow" && decision.input !== undefined
            ? editing(decision.input, describe(error))
            : { name: "choose" };
        changed();
        return;
      }
      if (decidedMeanwhile) tellDecided(decidedMeanwhile);
      else tell(`  ${style.red("!")} ${describe(error)}`);
    }
    if (open[0] === question) open.shift();
    next();
  }

  function editing(input: unknown, fault?: string): Mode {
    const editor = createEditor((text) => {
      const parsed = parse(text);
      if (!parsed.ok) {
        editor.set(text);
        mode = { name: "edit", editor, fault: parsed.fault };
        return;
      }
      void send({ decision: "allow", input: parsed.value });
    });
    const compact = JSON.stringify(input) ?? "";
    editor.set(compact.length <= 60 ? compact : JSON.stringify(input, null, 2));
    return { name: "edit", editor, ...(fault === undefined ? {} : { fault }) };
  }

  function reasoning(): Mode {
    const editor = createEditor((text) => {
      const message = text.trim();
      void send({ decision: "deny", ...(message === "" ? {} : { message }) });
    });
    return { name: "reason", editor };
  }

  function choose(letter: string): void {
    const question = open[0]!;
    switch (letter.toLowerCase()) {
      case "y":
        return void send({ decision: "allow" });
      case "a":
        return void send({ decision: "allow", remember: "session" });
      case "s":
        return void send({ decision: "stop" });
      case "n":
        mode = reasoning();
        break;
      case "e":
        mode = editing(question.input);
        break;
      case "v":
        showAll(question);
        break;
    }
    changed();
  }

  function tellDecided({ decision, by, message }: Decided): void {
    tell(`  ${outcome(decision, message, style)} ${style.dim(`by ${visible(by)}, elsewhere`)}`);
  }

  return {
    get isAsking() {
      return open.length > 0;
    },
    ask(question) {
      if (open.some(({ request_id }) => request_id === question.request_id)) return;
      open.push(question);
      if (open.length === 1) next();
    },
    decided(event) {
      const at = open.findIndex(({ request_id }) => request_id === event.request_id);
      if (at < 0) return;
      if (at === 0 && mode.name === "sending") {
        decidedMeanwhile = event;
        return;
      }
      open.splice(at, 1);
      tellDecided(event);
      if (at === 0) next();
    },
    clear() {
      open = [];
      next();
    },
    handle(key) {
      if (open.length === 0) return false;
      if (!isArmed) {
        arm();
        return false;
      }
      if (mode.name === "sending") return true;
      if (mode.name === "choose") {
        if (key.name === "text") choose(key.text);
        return true;
      }
      if (key.name === "escape") mode = { name: "choose" };
      else mode.editor.handle(key);
      changed();
      return true;
    },
    show(columns) {
      if (open.length === 0 || !isArmed) return null;
      const more = open.length > 1 ? style.dim(` (${open.length - 1} more after this)`) : "";
      switch (mode.name) {
        case "sending":
          return { rows: [style.dim("  …")], cursor: null };
        case "choose":
          return { rows: choices(columns, style).map((row, at) => (at === 0 ? `${row}${more}` : row)), cursor: null };
        case "reason":
          return under(mode.editor.show("  ", columns), [
            style.dim("  Why not? The agent reads it. Enter sends it, also empty; Esc goes back."),
          ]);
        case "edit": {
          const hint = "  Change the input; Enter allows it, Esc goes back.";
          return under(mode.editor.show("  ", columns), [mode.fault ? `  ${style.red(mode.fault)}` : style.dim(hint)]);
        }
      }
    },
  };
}

function choices(columns: number, style: Style): string[] {
  const all = ["[y]es", "[n]o", "[e]dit", "[a]lways in this session", "[s]top the run"];
  const rows = [""];
  for (const one of all) {
    const row = rows.at(-1)!;
    if (row !== "" && row.length + one.length + 2 > columns - 3) rows.push(one);
    else rows[rows.length - 1] = row === "" ? one : `${row}  ${one}`;
  }
  return rows.map(
    (row) => `  ${row.replaceAll(/\[(\w)\]/g, (_, letter: string) => style.bold(style.cyan(`[${letter}]`)))}`,
  );
}

function under({ rows, cursor }: Live, above: readonly string[] = []): Live {
  return { rows: [...above, ...rows], cursor: cursor && { ...cursor, row: cursor.row + above.length } };
}

function outcome(decision: Decided["decision"], message: string | null | undefined, style: Style): string {
  const words = {
    allow: style.green("allowed"),
    deny: style.red("denied"),
    stop: style.red("stopped"),
    expired: style.red("expired"),
    superseded: style.dim("asked again by a later attempt"),
  }[decision];
  return message ? `${words}: ${visible(message)}` : words;
}

function parse(text: string): { ok: true; value: unknown } | { ok: false; fault: string } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, fault: `Not valid JSON: ${error.message}` };
  }
}

function describe(error: Error): string {
  const next = "next" in error && typeof error.next === "string" ? ` ${error.next}` : "";
  return `${visible(error.message)}${visible(next)}`;
}

/** The edited input does not fit the tool: it can be changed once more. */
function isBadInput({ field, code }: RequestError): boolean {
  return (field ?? "").includes("input") || code === "DROVER-API-006";
}
