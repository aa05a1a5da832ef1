import { RequestError } from "../../model/errors.ts";
import type { ApiClient, FlatAgent } from "../../wire/client.ts";
import { draw } from "../io.ts";
import { createQuestionPrompt, type QuestionPrompt } from "../question-prompt.ts";
import { escapeInvisible } from "../question-view.ts";
import { createEditor } from "../terminal/editor.ts";
import { type Key, openKeyboard } from "../terminal/keys.ts";
import { createScreen, type LiveArea, type ScreenSize } from "../terminal/screen.ts";
import type { Style } from "../terminal/style.ts";
import { truncateToWidth, wrapLine } from "../terminal/text-width.ts";
import type { HistoryFile } from "./history-file.ts";
import type { Conversation } from "./conversation.ts";
import { createTurnView, type TurnView } from "./turn-view.ts";

/** The parts of a chat that are available once the coordinator has been found or the record has been opened. */
export interface ChatContext {
  client: ApiClient;
  conversation: Conversation;
  agent: FlatAgent;
}

export interface TerminalChat {
  /** Sends the messages that are already typed, then those that follow. Resolves when the user leaves. */
  run(context: ChatContext): Promise<void>;
  setHistory(history: HistoryFile): void;
  print(line: string): void;
  /** Restores the terminal. */
  close(): void;
}

/** Opens a chat in the terminal. The prompt appears immediately, before anything else is loaded. */
export function openTerminalChat(agent: string, style: Style): TerminalChat {
  const screen = createScreen((text) => draw(1, text), readTerminalSize);
  const typedTexts: string[] = [];
  let history: HistoryFile = { lines: typedTexts, add: (text) => void typedTexts.push(text) };
  let context: ChatContext | null = null;
  let questionPrompt: QuestionPrompt | null = null;
  let view: TurnView | null = null;
  let startedAt = 0;
  let waitingFor: string | null = null;
  const queue: string[] = [];
  let isStopping = false;
  let isLeaving = false;
  let hint = "";
  let resolveUserLeft!: () => void;
  const userLeft = new Promise<void>((resolve) => (resolveUserLeft = resolve));

  const editor = createEditor(submit, typedTexts);
  const keyboard = openKeyboard(process.stdin, (text) => draw(1, text), onKey);
  const refreshTimer = setInterval(() => view && refresh(), 1000);
  const onResize = (): void => {
    screen.redraw();
    refresh();
  };
  process.stdout.on("resize", onResize);
  const onSignal = (): void => interrupt();
  process.on("SIGINT", onSignal);
  const prompt = `${style.bold(style.cyan("›"))} `;
  screen.print(`${style.bold(escapeInvisible(agent))}${style.dim(" · /help for commands, Ctrl-D to leave")}\n`);
  refresh();

  function print(line: string): void {
    view?.endLine();
    screen.endLine();
    screen.print(`${line}\n`);
  }

  function refresh(): void {
    const { columns } = readTerminalSize();
    const rows: string[] = [];
    if (view) rows.push(statusRow(columns));
    for (const text of queue)
      rows.push(style.dim(truncateToWidth(`  next: ${escapeInvisible(text).replaceAll("\n", " ")}`, columns - 2)));
    const questionRows = questionPrompt?.show(columns) ?? null;
    const inputRows = questionRows ?? editor.show(prompt, columns);
    const liveArea: LiveArea = {
      rows: [...rows, ...inputRows.rows, ...(hint ? [style.dim(`  ${hint}`)] : [])],
      cursor: inputRows.cursor && { ...inputRows.cursor, row: inputRows.cursor.row + rows.length },
    };
    screen.setLiveArea(liveArea);
  }

  function statusRow(columns: number): string {
    const seconds = Math.floor((Date.now() - startedAt) / 1000);
    const activity = isStopping ? "stopping" : (waitingFor ?? view?.activeTools.join(", ")) || "working";
    return style.dim(
      `${truncateToWidth(`  ${activity}`, columns - 24)} · ${seconds}s${isStopping ? "" : " · Ctrl-C to stop"}`,
    );
  }

  function onKey(key: Key): void {
    const shownHint = hint;
    hint = "";
    if (key.name === "interrupt") return interrupt(shownHint !== "");
    if (key.name === "redraw") screen.clear();
    else if (questionPrompt?.handle(key)) return;
    else if (!editor.handle(key) && key.name === "end-of-input") leave();
    refresh();
  }

  function interrupt(isSecond = false): void {
    if (view) {
      if (isStopping) return leaveImmediately();
      isStopping = true;
      hint = "Ctrl-C again to leave without waiting";
      // Moves queued messages back to the editor instead of sending or losing them.
      const unsent = queue.splice(0).join("\n");
      if (unsent !== "") editor.set(editor.text === "" ? unsent : `${unsent}\n${editor.text}`);
      context?.conversation.stop().catch(report);
    } else if (editor.text !== "") editor.set("");
    else if (isSecond || context === null) return leave();
    else hint = "Ctrl-C again or Ctrl-D to leave";
    refresh();
  }

  function submit(text: string): void {
    if (text.trim() === "") return;
    history.add(text);
    if (text.startsWith("/") && context) return void runSlashCommand(text, context);
    if (view && context) return void sendInput(text, context);
    queue.push(text);
    void sendQueued();
  }

  /** Sends a message to the active run if its executor reads input. Otherwise the message becomes the next turn. */
  async function sendInput(text: string, { conversation }: ChatContext): Promise<void> {
    queue.push(text);
    refresh();
    try {
      if (isStopping || !(await conversation.sendInput(text))) return void sendQueued();
      // The end of the turn or Ctrl-C may already have removed the message from the queue.
      const index = queue.indexOf(text);
      if (index >= 0) queue.splice(index, 1);
      print(formatSent(text));
    } catch (error) {
      report(error);
    }
    refresh();
  }

  async function runSlashCommand(
    line: string,
    { client, conversation, agent: { name, model } }: ChatContext,
  ): Promise<void> {
    print(formatSent(line));
    const { runSlash } = await import("./slash-commands.ts");
    await runSlash(line, { client, conversation, agent: name, agentModel: model ?? null, print, leave, style }).catch(
      report,
    );
    refresh();
  }

  async function sendQueued(): Promise<void> {
    while (context && !view && queue.length > 0 && !isLeaving) {
      const text = queue.shift()!;
      // This command was typed before the chat was ready.
      if (text.startsWith("/")) {
        await runSlashCommand(text, context);
        continue;
      }
      await runTurn(text, context).catch(report);
      view = null;
      questionPrompt?.clear();
      isStopping = false;
      waitingFor = null;
      hint = "";
      refresh();
    }
    if (isLeaving) resolveUserLeft();
  }

  async function runTurn(text: string, { conversation }: ChatContext): Promise<void> {
    const columns = (): number => readTerminalSize().columns;
    const turnView = createTurnView({ print: (piece) => screen.print(piece), columns, style });
    print(formatSent(text));
    view = turnView;
    startedAt = Date.now();
    refresh();
    /** Messages sent to the run that its agent has not reacted to yet. */
    let unanswered: string[] = [];
    const run = await conversation.runTurn(text, {
      onStart: refresh,
      onPartial: (delta) => turnView.showPiece(delta),
      onEvent(stored) {
        const { event, run_id } = stored;
        if (event.type === "permission_request") {
          turnView.endLine();
          questionPrompt?.ask({ run_id, ...event });
        } else {
          if (event.type === "permission_decision") questionPrompt?.onDecision(event);
          if (event.type === "system" && event.subtype === "user_input") unanswered.push(readInputText(event.data));
          if (event.type === "assistant" || event.type === "tool_use") unanswered = [];
          if (event.type === "status") waitingFor = statusTexts[event.status] ?? null;
          turnView.showEvent(stored);
        }
        refresh();
      },
    });
    turnView.end(run);
    screen.print("\n");
    // These messages arrived while the run was ending, so send them again as the next turn.
    if (run.status === "completed") queue.unshift(...unanswered.filter((message) => message !== ""));
  }

  /** A sent message as it is printed to the terminal: the prompt, then the text, indented to line up. */
  function formatSent(text: string): string {
    const lines = escapeInvisible(text).split("\n");
    const rows = lines.flatMap((line) => wrapLine(`  ${line}`, readTerminalSize().columns - 1));
    return `${prompt}${rows.join("\n").slice(2)}`;
  }

  function report(error: unknown): void {
    if (!(error instanceof Error)) throw error;
    print(`${style.red("!")} ${escapeInvisible(error.message)}`);
    if (error instanceof RequestError && error.next) print(`  ${escapeInvisible(error.next)}`);
    refresh();
  }

  function leave(): void {
    if (context === null) leaveImmediately();
    isLeaving = true;
    if (!view) return resolveUserLeft();
    isStopping = true;
    context?.conversation.stop().catch(report);
  }

  function leaveImmediately(): never {
    close();
    process.exit(130);
  }

  function close(): void {
    clearInterval(refreshTimer);
    process.stdout.off("resize", onResize);
    process.off("SIGINT", onSignal);
    keyboard.close();
    screen.close();
  }

  return {
    print(line) {
      print(line);
      refresh();
    },
    setHistory(loaded) {
      // Messages typed while the history was loading are the newest.
      const typedWhileLoading = typedTexts.splice(0);
      typedTexts.push(...loaded.lines);
      history = { lines: typedTexts, add: (text) => (typedTexts.push(text), loaded.add(text)) };
      for (const text of typedWhileLoading) history.add(text);
    },
    async run(loaded) {
      context = loaded;
      questionPrompt = createQuestionPrompt({
        agent,
        answer: ({ run_id, request_id }, decision) => loaded.conversation.answer(run_id, request_id, decision),
        print,
        onChange: refresh,
        style,
      });
      void sendQueued();
      await userLeft;
    },
    close,
  };
}

/** Reads the text of a user_input event. */
function readInputText(data: unknown): string {
  const text: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "text") : null;
  return typeof text === "string" ? text : "";
}

const statusTexts: Record<string, string> = {
  pending: "waiting for a runner",
  claimed: "starting",
  waiting: "waiting for your answer",
  parked: "parked until it is continued",
};

/** Reads the size of the terminal. A terminal that does not know its size reports 0. */
function readTerminalSize(): ScreenSize {
  return { columns: Math.max(process.stdout.columns || 80, 20), rows: process.stdout.rows || 24 };
}
