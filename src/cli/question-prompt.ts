import type { RunEvent } from "../model/event.ts";
import type { Decision } from "../model/executor.ts";
import { RequestError } from "../model/errors.ts";
import { type OpenQuestion, describeEffect, toInputLines, escapeInvisible } from "./question-view.ts";
import { createEditor, type Editor } from "./terminal/editor.ts";
import type { Key } from "./terminal/keys.ts";
import type { LiveArea } from "./terminal/screen.ts";
import type { Style } from "./terminal/style.ts";

/** Lets a person answer the questions of a run, one after another. */
export interface QuestionPrompt {
  readonly isAsking: boolean;
  ask(question: OpenQuestion): void;
  /** Call this when the log records a decision, which may be another person's. `isStopped`: the run stops or has ended. */
  onDecision(event: Extract<RunEvent, { type: "permission_decision" }>, isStopped?: boolean): void;
  /** Drops all questions, because the run has ended or a new attempt has started. */
  clear(): void;
  /** Returns false if the key was not for the prompt. Ignores the keys of a person who is still typing when the question appears. */
  handle(key: Key): boolean;
  /** The live rows at the bottom of the screen while a question is open. */
  show(columns: number): LiveArea | null;
}

export interface QuestionPromptOptions {
  agent: string;
  answer(question: OpenQuestion, decision: Decision): Promise<unknown>;
  /** Prints a permanent line. */
  print(line: string): void;
  /** Called when the result of `show` has changed. */
  onChange(): void;
  style: Style;
  /** How long the keyboard must have been idle before a key counts as an answer. */
  idleMs?: number;
}

type Mode = { name: "choose" } | { name: "reason" | "edit"; editor: Editor; fault?: string } | { name: "sending" };
type DecisionEvent = Parameters<QuestionPrompt["onDecision"]>[0];

/** How many lines of the input to show. The rest is shown on request. */
const maxLines = 30;

export function createQuestionPrompt({
  agent,
  answer,
  print,
  onChange,
  style,
  idleMs = 400,
}: QuestionPromptOptions): QuestionPrompt {
  let openQuestions: OpenQuestion[] = [];
  let mode: Mode = { name: "choose" };
  /** A decision that was recorded while this person's answer was being sent. It may be another person's. */
  let pendingDecision: { event: DecisionEvent; isStopped: boolean } | null = null;
  let isArmed = false;
  let armTimer: NodeJS.Timeout | null = null;

  function arm(): void {
    if (armTimer) clearTimeout(armTimer);
    isArmed = false;
    armTimer = setTimeout(() => {
      isArmed = true;
      onChange();
    }, idleMs);
  }

  function showNext(): void {
    mode = { name: "choose" };
    pendingDecision = null;
    if (armTimer) clearTimeout(armTimer);
    const [first] = openQuestions;
    if (first) {
      printQuestion(first);
      arm();
    }
    onChange();
  }

  function printQuestion({ tool, input, effect }: OpenQuestion): void {
    const description = describeEffect(effect);
    print(
      `${style.yellow("?")} ${style.bold(escapeInvisible(agent))} asks to use ${style.bold(escapeInvisible(tool))}${description ? style.dim(` (${description})`) : ""}`,
    );
    const lines = toInputLines(input);
    for (const line of lines.slice(0, maxLines)) print(`    ${line}`);
    if (lines.length > maxLines) print(style.dim(`    … ${lines.length - maxLines} more lines: press v to see all`));
  }

  function showAll({ input }: OpenQuestion): void {
    for (const line of toInputLines(input)) print(`    ${line}`);
  }

  async function send(decision: Decision): Promise<void> {
    const question = openQuestions[0]!;
    mode = { name: "sending" };
    onChange();
    try {
      await answer(question, decision);
      print(`  ${describeDecision(decision.decision, decision.decision === "allow" ? null : decision.message, style)}`);
      if (decision.decision === "allow" && decision.input !== undefined)
        for (const line of toInputLines(decision.input)) print(`    ${line}`);
      if (decision.decision === "allow" && decision.remember) print(style.dim("  for the rest of this session"));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const isRejected = error instanceof RequestError && isBadInput(error);
      if (isRejected && openQuestions[0] === question) {
        mode =
          decision.decision === "allow" && decision.input !== undefined
            ? startEditing(decision.input, describeError(error))
            : { name: "choose" };
        onChange();
        return;
      }
      if (pendingDecision) printDecision(pendingDecision.event, pendingDecision.isStopped);
      else print(`  ${style.red("!")} ${describeError(error)}`);
    }
    if (openQuestions[0] === question) openQuestions.shift();
    showNext();
  }

  function startEditing(input: unknown, fault?: string): Mode {
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

  function startDenying(): Mode {
    const editor = createEditor((text) => {
      const message = text.trim();
      void send({ decision: "deny", ...(message === "" ? {} : { message }) });
    });
    return { name: "reason", editor };
  }

  function choose(letter: string): void {
    const question = openQuestions[0]!;
    switch (letter.toLowerCase()) {
      case "y":
        return void send({ decision: "allow" });
      case "a":
        return void send({ decision: "allow", remember: "session" });
      case "s":
        return void send({ decision: "stop" });
      case "n":
        mode = startDenying();
        break;
      case "e":
        mode = startEditing(question.input);
        break;
      case "v":
        showAll(question);
        break;
    }
    onChange();
  }

  function printDecision({ decision, by, message }: DecisionEvent, isStopped: boolean): void {
    if (decision === "superseded")
      return print(
        `  ${style.dim(isStopped ? "not answered: the run was stopped" : describeDecision(decision, message, style))}`,
      );
    print(`  ${describeDecision(decision, message, style)} ${style.dim(`by ${escapeInvisible(by)}, elsewhere`)}`);
  }

  return {
    get isAsking() {
      return openQuestions.length > 0;
    },
    ask(question) {
      if (openQuestions.some(({ request_id }) => request_id === question.request_id)) return;
      openQuestions.push(question);
      if (openQuestions.length === 1) showNext();
    },
    onDecision(event, isStopped = false) {
      const index = openQuestions.findIndex(({ request_id }) => request_id === event.request_id);
      if (index < 0) return;
      if (index === 0 && mode.name === "sending") {
        pendingDecision = { event, isStopped };
        return;
      }
      openQuestions.splice(index, 1);
      printDecision(event, isStopped);
      if (index === 0) showNext();
    },
    clear() {
      openQuestions = [];
      showNext();
    },
    handle(key) {
      if (openQuestions.length === 0) return false;
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
      if (openQuestions.length === 0 || !isArmed) return null;
      const moreHint = openQuestions.length > 1 ? style.dim(` (${openQuestions.length - 1} more after this)`) : "";
      switch (mode.name) {
        case "sending":
          return { rows: [style.dim("  …")], cursor: null };
        case "choose":
          return {
            rows: formatChoices(columns, style).map((row, index) => (index === 0 ? `${row}${moreHint}` : row)),
            cursor: null,
          };
        case "reason":
          return withRowsAbove(mode.editor.show("  ", columns), [
            style.dim("  Why not? The agent reads your reason. Enter sends it, even if empty; Esc goes back."),
          ]);
        case "edit": {
          const hint = "  Edit the input. Enter allows it, Esc goes back.";
          return withRowsAbove(mode.editor.show("  ", columns), [
            mode.fault ? `  ${style.red(mode.fault)}` : style.dim(hint),
          ]);
        }
      }
    },
  };
}

function formatChoices(columns: number, style: Style): string[] {
  const all = ["[y]es", "[n]o", "[e]dit", "[a]lways in this session", "[s]top the run"];
  const rows = [""];
  for (const choice of all) {
    const row = rows.at(-1)!;
    if (row !== "" && row.length + choice.length + 2 > columns - 3) rows.push(choice);
    else rows[rows.length - 1] = row === "" ? choice : `${row}  ${choice}`;
  }
  return rows.map(
    (row) => `  ${row.replaceAll(/\[(\w)\]/g, (_, letter: string) => style.bold(style.cyan(`[${letter}]`)))}`,
  );
}

function withRowsAbove({ rows, cursor }: LiveArea, rowsAbove: readonly string[] = []): LiveArea {
  return { rows: [...rowsAbove, ...rows], cursor: cursor && { ...cursor, row: cursor.row + rowsAbove.length } };
}

function describeDecision(
  decision: DecisionEvent["decision"],
  message: string | null | undefined,
  style: Style,
): string {
  const verb = {
    allow: style.green("allowed"),
    deny: style.red("denied"),
    stop: style.red("stopped"),
    expired: style.red("expired"),
    superseded: style.dim("not answered: the run no longer waits for it"),
  }[decision];
  return message ? `${verb}: ${escapeInvisible(message)}` : verb;
}

function parse(text: string): { ok: true; value: unknown } | { ok: false; fault: string } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, fault: `Not valid JSON: ${error.message}` };
  }
}

function describeError(error: Error): string {
  const next = "next" in error && typeof error.next === "string" ? ` ${error.next}` : "";
  return `${escapeInvisible(error.message)}${escapeInvisible(next)}`;
}

/** Whether the tool rejects the edited input. The person can then edit it again. */
function isBadInput({ field, code }: RequestError): boolean {
  return (field ?? "").includes("input") || code === "DROVER-API-006";
}
