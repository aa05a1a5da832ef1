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

/** What a command of a chat works with. */
export interface SlashContext {
  client: ApiClient;
  conversation: Conversation;
  agent: string;
  /** The agent's model, where its definition names one. */
  agentModel: string | null;
  tell(line: string): void;
  leave(): void;
  style: Style;
}

interface SlashCommand {
  takes: string;
  about: string;
  /** It changes which session the next message goes to: not while a turn is under way. */
  whenIdle?: true;
  run(context: SlashContext, given: string): Promise<void> | void;
}

export const slashCommands: Record<string, SlashCommand> = {
  help: { takes: "", about: "these commands", run: help },
  new: { takes: "", about: "begin a new session", whenIdle: true, run: begin },
  resume: { takes: "[SESSION]", about: "list sessions, or go on with one", whenIdle: true, run: resume },
  fork: {
    takes: "[TURN]",
    about: "go on with a copy of this session, or of its first turns",
    whenIdle: true,
    run: fork,
  },
  model: { takes: "[NAME]", about: "the model, or another one from the next message on", run: model },
  cost: { takes: "", about: "what this session has used", run: cost },
  files: { takes: "", about: "files that this session left", run: files },
  quit: { takes: "", about: "leave; Ctrl-D does too", run: ({ leave }) => leave() },
};

/** Runs `/NAME WORDS`. An unknown command is reported, not sent to the agent. */
export async function runSlash(line: string, context: SlashContext): Promise<void> {
  const [, name = "", given = ""] = /^\/(\S*)\s*(.*)$/su.exec(line) ?? [];
  const command = Object.hasOwn(slashCommands, name) ? slashCommands[name]! : null;
  if (!command) {
    const near = suggest(name, Object.keys(slashCommands));
    context.tell(
      `There is no /${visible(name)}.${near ? ` Did you mean /${near}?` : " /help lists the commands."} A message may begin with a space and a slash.`,
    );
    return;
  }
  if (command.whenIdle && context.conversation.run_id !== null) {
    context.tell(`/${name} has to wait for the end of this turn; Ctrl-C stops it.`);
    return;
  }
  try {
    await command.run(context, given.trim());
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    context.tell(`${context.style.red("!")} ${visible(error.message)}`);
  }
}

function help({ tell, style }: SlashContext): void {
  const rows = Object.entries(slashCommands).map(([name, { takes, about }]): [string, string] => [
    `/${name}${takes ? ` ${takes}` : ""}`,
    about,
  ]);
  const keys: [string, string][] = [
    ["Enter", "send; while the agent works, the message waits for it"],
    ["Alt-Enter, Ctrl-J", "a new line; so does a backslash at the end of one"],
    ["Up, Down", "what you typed before"],
    ["Ctrl-C", "stop the turn; a second one leaves"],
  ];
  for (const row of columns([...rows, ...keys])) tell(row);
  tell(style.dim("  Everything is on the record: drover runs list, drover sessions list"));
}

function begin({ conversation, tell, style }: SlashContext): void {
  conversation.begin();
  tell(style.dim("  A new session begins with your next message."));
}

async function resume({ client, conversation, agent, tell, style }: SlashContext, given: string): Promise<void> {
  const { items } = await client.sessions.list({ agent_name: agent, limit: 10 });
  if (given === "") {
    if (items.length === 0) return tell("  There is no session of this agent yet.");
    const now = new Date();
    for (const [at, { session_id, run_count, last_used_at }] of items.entries()) {
      const runs = `${run_count} ${run_count === 1 ? "turn" : "turns"}`;
      const here = session_id === conversation.session_id ? style.green(" (this one)") : "";
      tell(`  ${String(at + 1).padStart(2)}  ${session_id}  ${runs}, ${age(last_used_at, now)}${here}`);
    }
    return tell(style.dim("  /resume NUMBER, or the beginning of an id"));
  }
  const numbered = /^\d{1,2}$/.test(given) ? items[Number(given) - 1] : undefined;
  const session = numbered ?? (await findSession(client, given));
  if (session.agent_name !== agent)
    return tell(
      `  That session is of ${visible(session.agent_name)}: drover chat ${visible(session.agent_name)} --session ${session.session_id}`,
    );
  conversation.resume(session.session_id);
  await showLast({ client, tell, style }, session.session_id);
}

/** The end of a session that is resumed, so that one knows where it was. */
export async function showLast(
  { client, tell, style }: Pick<SlashContext, "client" | "tell" | "style">,
  session_id: string,
): Promise<void> {
  const { versions } = await client.sessions.get(session_id);
  const last = versions[0];
  tell(style.dim(`  Session ${session_id}, ${versions.length} ${versions.length === 1 ? "turn" : "turns"}`));
  if (!last) return;
  const run = await client.runs.get(last.run_id);
  if (run.prompt) tell(style.dim(`  › ${brief(run.prompt)}`));
  if (run.result_text) tell(style.dim(`  ${brief(run.result_text)}`));
}

function fork({ conversation, tell, style }: SlashContext, given: string): void {
  const { session_id } = conversation;
  if (session_id === null) return tell("  There is nothing to fork yet: say something first, or /resume a session.");
  if (!/^([1-9]\d{0,5})?$/.test(given)) return tell("  A turn is a number from 1: /fork 2 keeps the first two turns.");
  conversation.fork(given === "" ? undefined : Number(given));
  const what = given === "" ? "this session" : `the first ${given === "1" ? "turn" : `${given} turns`} of this session`;
  tell(style.dim(`  Your next message goes to a copy of ${what}; ${session_id} stays as it is.`));
}

function model({ conversation, agentModel, tell, style }: SlashContext, given: string): void {
  const own = agentModel ?? "the default of its provider";
  if (given === "") return tell(`  ${visible(conversation.model ?? own)}`);
  conversation.model = given === "default" ? null : given;
  tell(style.dim(`  From your next message on: ${visible(conversation.model ?? own)}`));
}

async function cost({ client, conversation, tell }: SlashContext): Promise<void> {
  const sum = { input_tokens: 0, output_tokens: 0, cost_usd: null as number | null };
  const runs = conversation.session_id === null ? [] : await runsOf(client, conversation.session_id);
  for (const { usage } of runs) {
    sum.input_tokens += usage?.input_tokens ?? 0;
    sum.output_tokens += usage?.output_tokens ?? 0;
    if (usage?.cost_usd) sum.cost_usd = (sum.cost_usd ?? 0) + usage.cost_usd;
  }
  tell(`  ${usageLine(sum)} in ${runs.length} ${runs.length === 1 ? "turn" : "turns"}`);
}

async function files({ client, conversation, tell, style }: SlashContext): Promise<void> {
  const runs = conversation.session_id === null ? [] : await runsOf(client, conversation.session_id);
  let count = 0;
  // the newest last, as in a transcript
  for (const { run_id } of runs.toReversed()) {
    const { items } = await client.runs.files(run_id);
    for (const { path, size: bytes } of items) tell(`  ${visible(path)} ${style.dim(size(bytes))}`);
    if (items.length > 0) tell(style.dim(`    drover runs files ${run_id}`));
    count += items.length;
  }
  if (count === 0) tell("  No files yet.");
}

async function runsOf(client: ApiClient, session_id: string) {
  return (await client.runs.list({ session_id, limit: 1000 })).items;
}

function brief(text: string): string {
  const line = visible(text.trim()).replaceAll(/\s+/g, " ");
  return line.length > 200 ? `${line.slice(0, 200).replace(/[\ud800-\udbff]$/, "")} …` : line;
}
