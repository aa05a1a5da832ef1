import { RequestError } from "../../model/errors.ts";
import { suggest } from "../../model/suggest.ts";
import type { ApiClient } from "../../wire/client.ts";
import { usageLine } from "../event-line.ts";
import { findSession } from "../find-id.ts";
import { columns } from "../help.ts";
import { visible } from "../question-view.ts";
import { age, size } from "../table.ts";
import type { Style } from "../terminal/style.ts";
import type { Conversation } from "./conversation.ts";

/** What the commands of a chat work with. */
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
  takes: string;
  about: string;
  /** Only between turns, because the command changes the session of the next message. */
  whenIdle?: true;
  run(context: SlashContext, given: string): Promise<void> | void;
}

export const slashCommands: Record<string, SlashCommand> = {
  help: { takes: "", about: "list the commands", run: help },
  new: { takes: "", about: "start a new session", whenIdle: true, run: startNew },
  resume: { takes: "[SESSION]", about: "list sessions, or continue one", whenIdle: true, run: resume },
  fork: {
    takes: "[TURN]",
    about: "continue a copy of this session, or of its first turns",
    whenIdle: true,
    run: fork,
  },
  model: { takes: "[NAME]", about: "show the model, or change it from the next message on", run: model },
  cost: { takes: "", about: "show the tokens and cost of this session", run: cost },
  files: { takes: "", about: "list the files of this session", run: files },
  quit: { takes: "", about: "leave, like Ctrl-D", run: ({ leave }) => leave() },
};

/** Runs `/NAME WORDS`. An unknown command is reported, not sent to the agent. */
export async function runSlash(line: string, context: SlashContext): Promise<void> {
  const [, name = "", given = ""] = /^\/(\S*)\s*(.*)$/su.exec(line) ?? [];
  const command = Object.hasOwn(slashCommands, name) ? slashCommands[name]! : null;
  if (!command) {
    const near = suggest(name, Object.keys(slashCommands));
    context.print(
      `Unknown command /${visible(name)}.${near ? ` Did you mean /${near}?` : " Type /help for a list."} To send a message that starts with a slash, put a space before it.`,
    );
    return;
  }
  if (command.whenIdle && context.conversation.run_id !== null) {
    context.print(`/${name} is not possible during a turn. Wait for its end, or stop it with Ctrl-C.`);
    return;
  }
  try {
    await command.run(context, given.trim());
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    context.print(`${context.style.red("!")} ${visible(error.message)}`);
  }
}

function help({ print, style }: SlashContext): void {
  const rows = Object.entries(slashCommands).map(([name, { takes, about }]): [string, string] => [
    `/${name}${takes ? ` ${takes}` : ""}`,
    about,
  ]);
  const keys: [string, string][] = [
    ["Enter", "send; while the agent is working, the message is queued"],
    ["Alt-Enter, Ctrl-J", "new line; a backslash at the end of a line does the same"],
    ["Up, Down", "recall earlier messages"],
    ["Ctrl-C", "stop the turn; press it again to leave"],
  ];
  for (const row of columns([...rows, ...keys])) print(row);
  print(style.dim("  Every turn is recorded: drover runs list, drover sessions list"));
}

function startNew({ conversation, print, style }: SlashContext): void {
  conversation.startNew();
  print(style.dim("  Your next message starts a new session."));
}

async function resume({ client, conversation, agent, print, style }: SlashContext, given: string): Promise<void> {
  const { items } = await client.sessions.list({ agent_name: agent, limit: 10 });
  if (given === "") {
    if (items.length === 0) return print("  This agent has no sessions yet.");
    const now = new Date();
    for (const [at, { session_id, run_count, last_used_at }] of items.entries()) {
      const runs = `${run_count} ${run_count === 1 ? "turn" : "turns"}`;
      const here = session_id === conversation.session_id ? style.green(" (this one)") : "";
      print(`  ${String(at + 1).padStart(2)}  ${session_id}  ${runs}, ${age(last_used_at, now)}${here}`);
    }
    return print(style.dim("  Type /resume NUMBER, or /resume with a session id or a prefix of it."));
  }
  const numbered = /^\d{1,2}$/.test(given) ? items[Number(given) - 1] : undefined;
  const session = numbered ?? (await findSession(client, given));
  if (session.agent_name !== agent)
    return print(
      `  That session belongs to ${visible(session.agent_name)}: drover chat ${visible(session.agent_name)} --session ${session.session_id}`,
    );
  conversation.resume(session.session_id);
  await showLast({ client, print, style }, session.session_id);
}

/** Shows the last turn of a resumed session. */
export async function showLast(
  { client, print, style }: Pick<SlashContext, "client" | "print" | "style">,
  session_id: string,
): Promise<void> {
  const { versions } = await client.sessions.get(session_id);
  const last = versions[0];
  print(style.dim(`  Session ${session_id}, ${versions.length} ${versions.length === 1 ? "turn" : "turns"}`));
  if (!last) return;
  const run = await client.runs.get(last.run_id);
  if (run.prompt) print(style.dim(`  › ${brief(run.prompt)}`));
  if (run.result_text) print(style.dim(`  ${brief(run.result_text)}`));
}

function fork({ conversation, print, style }: SlashContext, given: string): void {
  const { session_id } = conversation;
  if (session_id === null)
    return print("  There is no session to fork yet: send a message first, or /resume a session.");
  if (!/^([1-9]\d{0,5})?$/.test(given))
    return print("  The turn must be a number from 1: /fork 2 keeps the first two turns.");
  conversation.fork(given === "" ? undefined : Number(given));
  const what = given === "" ? "this session" : `the first ${given === "1" ? "turn" : `${given} turns`} of this session`;
  print(style.dim(`  Your next message goes to a copy of ${what}; ${session_id} stays unchanged.`));
}

function model({ conversation, agentModel, print, style }: SlashContext, given: string): void {
  const own = agentModel ?? "the provider's default";
  if (given === "") return print(`  ${visible(conversation.model ?? own)}`);
  conversation.model = given === "default" ? null : given;
  print(style.dim(`  From your next message on: ${visible(conversation.model ?? own)}`));
}

async function cost({ client, conversation, print }: SlashContext): Promise<void> {
  const sum = { input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  const runs = conversation.session_id === null ? [] : await runsOf(client, conversation.session_id);
  for (const { usage } of runs) {
    sum.input_tokens += usage?.input_tokens ?? 0;
    sum.output_tokens += usage?.output_tokens ?? 0;
    if (usage?.cost_usd) sum.cost_usd = (sum.cost_usd ?? 0) + usage.cost_usd;
  }
  print(`  ${usageLine(sum)} in ${runs.length} ${runs.length === 1 ? "turn" : "turns"}`);
}

async function files({ client, conversation, print, style }: SlashContext): Promise<void> {
  const runs = conversation.session_id === null ? [] : await runsOf(client, conversation.session_id);
  let count = 0;
  // Newest last, as in a transcript.
  for (const { run_id } of runs.toReversed()) {
    const { items } = await client.runs.files(run_id);
    for (const { path, size: bytes } of items) print(`  ${visible(path)} ${style.dim(size(bytes))}`);
    if (items.length > 0) print(style.dim(`    drover runs files ${run_id}`));
    count += items.length;
  }
  if (count === 0) print("  No files yet.");
}

async function runsOf(client: ApiClient, session_id: string) {
  return (await client.runs.list({ session_id, limit: 1000 })).items;
}

function brief(text: string): string {
  const line = visible(text.trim()).replaceAll(/\s+/g, " ");
  return line.length > 200 ? `${line.slice(0, 200).replace(/[\ud800-\udbff]$/, "")} …` : line;
}
