import type { RunEvent } from "../model/event.ts";
import type { Decision } from "../model/executor.ts";
import { RequestError } from "../model/errors.ts";
import { type Asked, effectWords, inputLines, visible } from "./question-view.ts";
import { createEditor, type Editor } from "./terminal/editor.ts";
import type { Key } from "./terminal/keys.ts";
import type { Live } from "./terminal/screen.ts";
import type { Style } from "./terminal/style.ts";

/** Lets a person answer the questions of a run, one after another. */
export interface QuestionPrompt {
  readonly isAsking: boolean;
  ask(question: Asked): void;
  /** The log records a decision, perhaps because somebody else has answered. */
  decided(event: Extract<RunEvent, { type: "permission_decision" }>): void;
  /** Drops all questions, because the run has ended or a new attempt has started. */
  clear(): void;
  /** Returns false if the key was not for the prompt. A person who is typing when a question appears does not answer it. */
  handle(key: Key): boolean;
  /** The live rows at the bottom of the screen while a question is open. */
  show(columns: number): Live | null;
}

export interface QuestionPromptOptions {
  agent: string;
  answer(question: Asked, decision: Decision): Promise<unknown>;
  /** Prints a permanent line. */
  print(line: string): void;
  /** Called when the result of `show` has changed. */
  onChange(): void;
  style: Style;
  /** How long the keyboard must have been idle before a key counts as an answer. */
  quietMs?: number;
}

type Mode = { name: "choose" } | { name: "reason" | "edit"; editor: Editor; fault?: string } | { name: "sending" };
type Decided = Parameters<QuestionPrompt["decided"]>[0];

/** Longer input is cut, and shown in full on request. */
const mostLines = 30;

export function createQuestionPrompt({
  agent,
  answer,
  print,
  onChange,
  style,
  quietMs = 400,
}: QuestionPromptOptions): QuestionPrompt {
  let open: Asked[] = [];
  let mode: Mode = { name: "choose" };
  /** A decision that arrived while our own answer was being sent. It may be ours or somebody else's. */
  let decidedMeanwhile: Decided | null = null;
  let isArmed = false;
  let arming: NodeJS.Timeout | null = null;

  function arm(): void {
    if (arming) clearTimeout(arming);
    isArmed = false;
    arming = setTimeout(() => {
      isArmed = true;
      onChange();
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
    onChange();
  }

  function present({ tool, input, effect }: Asked): void {
    const about = effectWords(effect);
    print(
      `${style.yellow("?")} ${style.bold(visible(agent))} asks to use ${style.bold(visible(tool))}${about ? style.dim(` (${about})`) : ""}`,
    );
    const lines = inputLines(input);
    for (const line of lines.slice(0, mostLines)) print(`    ${line}`);
    if (lines.length > mostLines) print(style.dim(`    … ${lines.length - mostLines} more lines: press v to see all`));
  }

  function showAll({ input }: Asked): void {
    for (const line of inputLines(input)) print(`    ${line}`);
  }

  async function send(decision: Decision): Promise<void> {
    const question = open[0]!;
    mode = { name: "sending" };
    onChange();
    try {
      await answer(question, decision);
      print(`  ${outcome(decision.decision, decision.decision === "allow" ? null : decision.message, style)}`);
      if (decision.decision === "allow" && decision.input !== undefined)
        for (const line of inputLines(decision.input)) print(`    ${line}`);
      if (decision.decision === "allow" && decision.remember) print(style.dim("  for the rest of this session"));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const bad = error instanceof RequestError && isBadInput(error);
      if (bad && open[0] === question) {
        mode =
          decision.decision === "allow" && decision.input !== undefined
            ? editing(decision.input, describe(error))
            : { name: "choose" };
        onChange();
        return;
      }
      if (decidedMeanwhile) printDecided(decidedMeanwhile);
      else print(`  ${style.red("!")} ${describe(error)}`);
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
    onChange();
  }

  function printDecided({ decision, by, message }: Decided): void {
    print(`  ${outcome(decision, message, style)} ${style.dim(`by ${visible(by)}, elsewhere`)}`);
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
      printDecided(event);
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
      onChange();
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
            style.dim("  Why not? The agent reads your reason. Enter sends it, even if empty; Esc goes back."),
          ]);
        case "edit": {
          const hint = "  Edit the input. Enter allows it, Esc goes back.";
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

/** The tool rejects the edited input, so the person can edit it again. */
function isBadInput({ field, code }: RequestError): boolean {
  return (field ?? "").includes("input") || code === "DROVER-API-006";
}
