import { RequestError } from "../../model/errors.ts";
import type { ApiClient, FlatAgent } from "../../wire/client.ts";
import { draw } from "../io.ts";
import { createQuestionPrompt, type QuestionPrompt } from "../question-prompt.ts";
import { visible } from "../question-view.ts";
import { createEditor } from "../terminal/editor.ts";
import { type Key, openKeyboard } from "../terminal/keys.ts";
import { createScreen, type Live, type ScreenSize } from "../terminal/screen.ts";
import type { Style } from "../terminal/style.ts";
import { cutToWidth, wrapLine } from "../terminal/text-width.ts";
import type { HistoryFile } from "./history-file.ts";
import type { Conversation } from "./conversation.ts";
import { createTurnView, type TurnView } from "./turn-view.ts";

/** Who talks, once the coordinator has been found or the record opened. */
export interface ChatContext {
  client: ApiClient;
  conversation: Conversation;
  agent: FlatAgent;
}

export interface TerminalChat {
  /** From here on messages are sent; those typed before go first. Resolves when the person leaves. */
  talkTo(partner: ChatContext): Promise<void>;
  setHistory(history: HistoryFile): void;
  tell(line: string): void;
  /** Gives the terminal back as it was. */
  close(): void;
}

/** A chat at a terminal. The prompt is there at once, before anything else is loaded. */
export function openTerminalChat(agent: string, style: Style): TerminalChat {
  const screen = createScreen((text) => draw(1, text), terminalSize);
  const typed: string[] = [];
  let history: HistoryFile = { lines: typed, add: (text) => void typed.push(text) };
  let partner: ChatContext | null = null;
  let questionPrompt: QuestionPrompt | null = null;
  let view: TurnView | null = null;
  let startedAt = 0;
  let waitsFor: string | null = null;
  const queue: string[] = [];
  let isStopping = false;
  let isLeaving = false;
  let hint = "";
  let left!: () => void;
  const hasLeft = new Promise<void>((resolve) => (left = resolve));

  const editor = createEditor(submit, typed);
  const keyboard = openKeyboard(process.stdin, (text) => draw(1, text), onKey);
  const clock = setInterval(() => view && refresh(), 1000);
  const onResize = (): void => {
    screen.resized();
    refresh();
  };
  process.stdout.on("resize", onResize);
  const onSignal = (): void => interrupt();
  process.on("SIGINT", onSignal);
  const prompt = `${style.bold(style.cyan("›"))} `;
  screen.print(`${style.bold(visible(agent))}${style.dim(" · /help lists commands, Ctrl-D leaves")}\n`);
  refresh();

  function tell(line: string): void {
    view?.makeWay();
    screen.endLine();
    screen.print(`${line}\n`);
  }

  function refresh(): void {
    const { columns } = terminalSize();
    const rows: string[] = [];
    if (view) rows.push(statusRow(columns));
    for (const text of queue)
      rows.push(style.dim(cutToWidth(`  next: ${visible(text).replaceAll("\n", " ")}`, columns - 2)));
    const asking = questionPrompt?.show(columns) ?? null;
    const below = asking ?? editor.show(prompt, columns);
    const live: Live = {
      rows: [...rows, ...below.rows, ...(hint ? [style.dim(`  ${hint}`)] : [])],
      cursor: below.cursor && { ...below.cursor, row: below.cursor.row + rows.length },
    };
    screen.setLive(live);
  }

  function statusRow(columns: number): string {
    const seconds = Math.floor((Date.now() - startedAt) / 1000);
    const what = isStopping ? "stopping" : (waitsFor ?? view?.doing.join(", ")) || "working";
    return style.dim(`${cutToWidth(`  ${what}`, columns - 24)} · ${seconds}s${isStopping ? "" : " · Ctrl-C stops"}`);
  }

  function onKey(key: Key): void {
    const hinted = hint;
    hint = "";
    if (key.name === "interrupt") return interrupt(hinted !== "");
    if (key.name === "redraw") screen.clear();
    else if (questionPrompt?.handle(key)) return;
    else if (!editor.handle(key) && key.name === "end-of-input") leave();
    refresh();
  }

  function interrupt(isSecond = false): void {
    if (view) {
      if (isStopping) return leaveAtOnce();
      isStopping = true;
      hint = "Ctrl-C again leaves without waiting";
      // what was to come next is not lost, and not sent either
      const unsent = queue.splice(0).join("\n");
      if (unsent !== "") editor.set(editor.text === "" ? unsent : `${unsent}\n${editor.text}`);
      partner?.conversation.stop().catch(report);
    } else if (editor.text !== "") editor.set("");
    else if (isSecond || partner === null) return leave();
    else hint = "Ctrl-C again, or Ctrl-D, leaves";
    refresh();
  }

  function submit(text: string): void {
    if (text.trim() === "") return;
    history.add(text);
    if (text.startsWith("/") && partner) return void slash(text, partner);
    if (view && partner) return void pass(text, partner);
    queue.push(text);
    void work();
  }

  /** To the run at work where its executor reads input; else it is the next turn. */
  async function pass(text: string, { conversation }: ChatContext): Promise<void> {
    queue.push(text);
    refresh();
    try {
      if (isStopping || !(await conversation.tell(text))) return void work();
      // unless the end of the turn, or Ctrl-C, has taken it meanwhile
      const at = queue.indexOf(text);
      if (at >= 0) queue.splice(at, 1);
      tell(echo(text));
    } catch (error) {
      report(error);
    }
    refresh();
  }

  async function slash(line: string, { client, conversation, agent: { name, model } }: ChatContext): Promise<void> {
    tell(echo(line));
    const { runSlash } = await import("./slash-commands.ts");
    await runSlash(line, { client, conversation, agent: name, agentModel: model ?? null, tell, leave, style }).catch(
      report,
    );
    refresh();
  }

  async function work(): Promise<void> {
    while (partner && !view && queue.length > 0 && !isLeaving) {
      const text = queue.shift()!;
      // typed before anybody was there to answer it
      if (text.startsWith("/")) {
        await slash(text, partner);
        continue;
      }
      await turn(text, partner).catch(report);
      view = null;
      questionPrompt?.clear();
      isStopping = false;
      waitsFor = null;
      hint = "";
      refresh();
    }
    if (isLeaving) left();
  }

  async function turn(text: string, { conversation }: ChatContext): Promise<void> {
    const columns = (): number => terminalSize().columns;
    const one = createTurnView({ print: (piece) => screen.print(piece), columns, style });
    tell(echo(text));
    view = one;
    startedAt = Date.now();
    refresh();
    /** Said to the run, and answered by nothing that its agent has said or done since. */
    let unheard: string[] = [];
    const run = await conversation.turn(text, {
      onStart: refresh,
      onPartial: (delta) => one.partial(delta),
      onEvent(stored) {
        const { event, run_id } = stored;
        if (event.type === "permission_request") {
          one.makeWay();
          questionPrompt?.ask({ run_id, ...event });
        } else {
          if (event.type === "permission_decision") questionPrompt?.decided(event);
          if (event.type === "system" && event.subtype === "user_input") unheard.push(textOf(event.data));
          if (event.type === "assistant" || event.type === "tool_use") unheard = [];
          if (event.type === "status") waitsFor = waiting[event.status] ?? null;
          one.event(stored);
        }
        refresh();
      },
    });
    one.end(run);
    screen.print("\n");
    // it arrived when the run was ending
    if (run.status === "completed") queue.unshift(...unheard.filter((said) => said !== ""));
  }

  /** A message as it stays on the terminal, indented behind the mark of the prompt. */
  function echo(text: string): string {
    const lines = visible(text).split("\n");
    const rows = lines.flatMap((line) => wrapLine(`  ${line}`, terminalSize().columns - 1));
    return `${prompt}${rows.join("\n").slice(2)}`;
  }

  function report(error: unknown): void {
    if (!(error instanceof Error)) throw error;
    tell(`${style.red("!")} ${visible(error.message)}`);
    if (error instanceof RequestError && error.next) tell(`  ${visible(error.next)}`);
    refresh();
  }

  function leave(): void {
    if (partner === null) leaveAtOnce();
    isLeaving = true;
    if (!view) return left();
    isStopping = true;
    partner?.conversation.stop().catch(report);
  }

  function leaveAtOnce(): never {
    close();
    process.exit(130);
  }

  function close(): void {
    clearInterval(clock);
    process.stdout.off("resize", onResize);
    process.off("SIGINT", onSignal);
    keyboard.close();
    screen.close();
  }

  return {
    tell(line) {
      tell(line);
      refresh();
    },
    setHistory(found) {
      // what was typed meanwhile is the newest
      const early = typed.splice(0);
      typed.push(...found.lines);
      history = { lines: typed, add: (text) => (typed.push(text), found.add(text)) };
      for (const text of early) history.add(text);
    },
    async talkTo(found) {
      partner = found;
      questionPrompt = createQuestionPrompt({
        agent,
        answer: ({ run_id, request_id }, decision) => found.conversation.answer(run_id, request_id, decision),
        tell,
        changed: refresh,
        style,
      });
      void work();
      await hasLeft;
    },
    close,
  };
}

/** Of what somebody said to the run, as the record has it. */
function textOf(data: unknown): string {
  const text: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "text") : null;
  return typeof text === "string" ? text : "";
}

const waiting: Record<string, string> = {
  pending: "waiting for a runner",
  claimed: "starting",
  waiting: "waiting for your answer",
  parked: "parked: nothing runs until it continues",
};

/** A terminal that does not know its size says 0. */
function terminalSize(): ScreenSize {
  return { columns: Math.max(process.stdout.columns || 80, 20), rows: process.stdout.rows || 24 };
}
