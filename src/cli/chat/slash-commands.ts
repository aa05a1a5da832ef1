import { RequestError } from "../../model/errors.ts";
import { suggest } from "../../model/suggest.ts";
import type { ApiClient } from "../../wire/client.ts";
import { describeUsage } from "../event-line.ts";
import { findSession } from "../find-id.ts";
import { formatColumns } from "../help.ts";
import { escapeInvisible } from "../question-view.ts";
import { formatAge, formatBytes } from "../table.ts";
import type { Style } from "../terminal/style.ts";
import type { Conversation } from "./conversation.ts";
import { findDroverCommand } from "../drover-command.ts";

/** What a slash command can use: the chat in which the user typed it. */
export interface SlashContext {
  client: ApiClient;
  conversation: Conversation;
  agent: string;
  /** The model that the agent's definition names, or null. */
  agentModel: string | null;
  print(line: string): void;
  leave(): void;
  style: Style;
}

interface SlashCommand {
  placeholder: string;
  description: string;
  /** Refuses the command during a turn, because it changes the session of the next message. */
  requiresIdle?: true;
  run(context: SlashContext, argument: string): Promise<void> | void;
}

export const slashCommands: Record<string, SlashCommand> = {
  help: { placeholder: "", description: "list the commands", run: showHelp },
  new: { placeholder: "", description: "start a new session", requiresIdle: true, run: startNew },
  resume: { placeholder: "[SESSION]", description: "list sessions, or continue one", requiresIdle: true, run: resume },
  fork: {
    placeholder: "[TURN]",
    description: "continue a copy of this session, or of its first turns",
    requiresIdle: true,
    run: fork,
  },
  model: { placeholder: "[NAME]", description: "show the model, or change it from the next message on", run: setModel },
  cost: { placeholder: "", description: "show the tokens and cost of this session", run: showCost },
  files: { placeholder: "", description: "list the files of this session", run: showFiles },
  quit: { placeholder: "", description: "leave, like Ctrl-D", run: ({ leave }) => leave() },
};

/** Runs `/NAME ARGUMENT`. An unknown command is reported, not sent to the agent. */
export async function runSlash(line: string, context: SlashContext): Promise<void> {
  const [, name = "", argument = ""] = /^\/(\S*)\s*(.*)$/su.exec(line) ?? [];
  const command = Object.hasOwn(slashCommands, name) ? slashCommands[name]! : null;
  if (!command) {
    const suggestion = suggest(name, Object.keys(slashCommands));
    context.print(
      `Unknown command /${escapeInvisible(name)}.${suggestion ? ` Did you mean /${suggestion}?` : " Type /help for a list."} To send a message that starts with a slash, put a space before it.`,
    );
    return;
  }
  if (command.requiresIdle && context.conversation.run_id !== null) {
    context.print(`/${name} is not possible during a turn. Wait until the turn ends, or stop it with Ctrl-C.`);
    return;
  }
  try {
    await command.run(context, argument.trim());
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    context.print(`${context.style.red("!")} ${escapeInvisible(error.message)}`);
  }
}

function showHelp({ print, style }: SlashContext): void {
  const rows = Object.entries(slashCommands).map(([name, { placeholder, description }]): [string, string] => [
    `/${name}${placeholder ? ` ${placeholder}` : ""}`,
    description,
  ]);
  const keys: [string, string][] = [
    ["Enter", "send; while the agent is working, the message is queued"],
    ["Alt-Enter, Ctrl-J", "new line; a backslash at the end of a line does the same"],
    ["Up, Down", "recall earlier messages"],
    ["Ctrl-C", "stop the turn; press it again to leave"],
  ];
  for (const row of formatColumns([...rows, ...keys])) print(row);
  print(style.dim(`  Every turn is recorded: ${findDroverCommand()} runs list, ${findDroverCommand()} sessions list`));
}

function startNew({ conversation, print, style }: SlashContext): void {
  conversation.startNew();
  print(style.dim("  Your next message starts a new session."));
}

async function resume({ client, conversation, agent, print, style }: SlashContext, argument: string): Promise<void> {
  const { items } = await client.sessions.list({ agent_name: agent, limit: 10 });
  if (argument === "") {
    if (items.length === 0) return print("  This agent has no sessions yet.");
    const now = new Date();
    for (const [index, { session_id, run_count, last_used_at }] of items.entries()) {
      const runs = `${run_count} ${run_count === 1 ? "turn" : "turns"}`;
      const currentNote = session_id === conversation.session_id ? style.green(" (this one)") : "";
      print(
        `  ${String(index + 1).padStart(2)}  ${session_id}  ${runs}, ${formatAge(last_used_at, now)}${currentNote}`,
      );
    }
    return print(style.dim("  Type /resume NUMBER, or /resume with a session id or a prefix of it."));
  }
  const byNumber = /^\d{1,2}$/.test(argument) ? items[Number(argument) - 1] : undefined;
  const session = byNumber ?? (await findSession(client, argument));
  if (session.agent_name !== agent)
    return print(
      `  That session belongs to ${escapeInvisible(session.agent_name)}: ${findDroverCommand()} chat ${escapeInvisible(session.agent_name)} --session ${session.session_id}`,
    );
  conversation.resume(session.session_id);
  await showLastTurn({ client, print, style }, session.session_id);
}

/** Shows the last turn of a resumed session. */
export async function showLastTurn(
  { client, print, style }: Pick<SlashContext, "client" | "print" | "style">,
  session_id: string,
): Promise<void> {
  const { versions } = await client.sessions.get(session_id);
  const last = versions[0];
  print(style.dim(`  Session ${session_id}, ${versions.length} ${versions.length === 1 ? "turn" : "turns"}`));
  if (!last) return;
  const run = await client.runs.get(last.run_id);
  if (run.prompt) print(style.dim(`  › ${truncate(run.prompt)}`));
  if (run.result_text) print(style.dim(`  ${truncate(run.result_text)}`));
}

function fork({ conversation, print, style }: SlashContext, argument: string): void {
  const { session_id } = conversation;
  if (session_id === null)
    return print("  This chat has no session to fork yet. Send a message first, or /resume a session.");
  if (!/^([1-9]\d{0,5})?$/.test(argument))
    return print("  The turn must be a number from 1: /fork 2 keeps the first two turns.");
  conversation.fork(argument === "" ? undefined : Number(argument));
  const source =
    argument === "" ? "this session" : `the first ${argument === "1" ? "turn" : `${argument} turns`} of this session`;
  print(style.dim(`  Your next message goes to a copy of ${source}; ${session_id} stays unchanged.`));
}

function setModel({ conversation, agentModel, print, style }: SlashContext, argument: string): void {
  const defaultModel = agentModel ?? "the provider's default";
  if (argument === "") return print(`  ${escapeInvisible(conversation.model ?? defaultModel)}`);
  conversation.model = argument === "default" ? null : argument;
  print(style.dim(`  From your next message on: ${escapeInvisible(conversation.model ?? defaultModel)}`));
}

async function showCost({ client, conversation, print }: SlashContext): Promise<void> {
  const total = { input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  const runs = conversation.session_id === null ? [] : await listRuns(client, conversation.session_id);
  for (const { usage } of runs) {
    total.input_tokens += usage?.input_tokens ?? 0;
    total.output_tokens += usage?.output_tokens ?? 0;
    if (usage?.cost_usd) total.cost_usd = (total.cost_usd ?? 0) + usage.cost_usd;
  }
  print(`  ${describeUsage(total)} in ${runs.length} ${runs.length === 1 ? "turn" : "turns"}`);
}

async function showFiles({ client, conversation, print, style }: SlashContext): Promise<void> {
  const runs = conversation.session_id === null ? [] : await listRuns(client, conversation.session_id);
  let count = 0;
  // Newest last, as in a transcript.
  for (const { run_id } of runs.toReversed()) {
    const { items } = await client.runs.files(run_id);
    for (const { path, size: bytes } of items) print(`  ${escapeInvisible(path)} ${style.dim(formatBytes(bytes))}`);
    if (items.length > 0) print(style.dim(`    ${findDroverCommand()} runs files ${run_id}`));
    count += items.length;
  }
  if (count === 0) print("  No files yet.");
}

async function listRuns(client: ApiClient, session_id: string) {
  return (await client.runs.list({ session_id, limit: 1000 })).items;
}

function truncate(text: string): string {
  const line = escapeInvisible(text.trim()).replaceAll(/\s+/g, " ");
  return line.length > 200 ? `${line.slice(0, 200).replace(/[\ud800-\udbff]$/, "")} …` : line;
}
