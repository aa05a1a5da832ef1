import { resolve } from "node:path";
import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { ApiClient, FlatAgent } from "../wire/client.ts";
import { isTerminal, write } from "./io.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { createStyleFor } from "./terminal/style.ts";
import { findDroverCommand } from "./drover-command.ts";

export const chatCommand: CommandSpec = {
  name: "chat",
  summary: "chat with an agent; every message is a recorded run in one session",
  placeholders: "AGENT [--PARAMETER VALUE...]",
  examples: [
    ["drover chat writer", "in a terminal; type /help for commands"],
    ["drover chat writer --session 5c20e9d4", "continue a session"],
    ['echo "write a haiku" | drover chat writer', "each line of stdin is a message"],
    ["drover chat writer --json < messages.txt", "every event as a line of JSON"],
  ],
  options: {
    session: { placeholder: "ID", description: "continue this session" },
    "project-dir": { placeholder: "DIR", description: "working directory of a new session" },
    attended: { description: "send questions to the inbox even without a terminal" },
    "no-attended": { description: "deny tool calls instead of asking about them" },
  },
  takesExtraOptions: true,
  run: runChat,
};

async function runChat(input: CommandInput): Promise<number> {
  const [agent_name, ...extraArguments] = [...input.positionals, ...(input.rest ?? [])];
  if (!agent_name) throw usageError("Specify the agent to chat with.", "chat", "AGENT");
  if (extraArguments.length > 0)
    throw usageError(
      `Unexpected argument ${extraArguments[0]}: type messages in the chat, or pipe them to stdin.`,
      "chat",
      extraArguments[0],
    );
  const hasTerminal = isTerminal(0) && isTerminal(1) && !input.options["json"] && !input.options["no-input"];
  return hasTerminal ? chatAtTerminal(input, agent_name) : chatInLines(input, agent_name);
}

async function chatAtTerminal(input: CommandInput, agent_name: string): Promise<number> {
  const { findProject } = await import("../local.ts");
  const { resolveTrust } = await import("./resolve-trust.ts");
  // Ask about trust before the chat takes over the terminal. The chat itself reports the ignored files.
  const scope = { profiles: true, agents: true };
  await resolveTrust(input, await findProject(input.env, input.cwd), scope, { print: () => undefined });
  const { openTerminalChat } = await import("./chat/terminal-chat.ts");
  const style = createStyleFor(1, input.env);
  const chat = openTerminalChat(agent_name, style);
  let resumeHint = "";
  try {
    const report = (message: string): void => chat.print(`drover: ${message}`);
    return await withAgent(input, agent_name, report, async (context, stateDirectory) => {
      const { openHistory } = await import("./chat/history-file.ts");
      chat.setHistory(openHistory(stateDirectory, report));
      const { session_id } = context.conversation;
      if (session_id !== null) {
        const { showLastTurn } = await import("./chat/slash-commands.ts");
        await showLastTurn({ client: context.client, print: (line) => chat.print(line), style }, session_id);
      }
      await chat.run(context);
      if (context.conversation.session_id)
        resumeHint = `Continue: ${findDroverCommand()} chat ${quoteForShell(agent_name)} --session ${context.conversation.session_id}\n`;
      return 0;
    });
  } finally {
    chat.close();
    if (!input.options["quiet"]) write(2, resumeHint);
  }
}

function chatInLines(input: CommandInput, agent_name: string): Promise<number> {
  return withAgent(input, agent_name, null, async ({ conversation }) => {
    const { runLineChat } = await import("./chat/line-chat.ts");
    return runLineChat(conversation, { json: input.options["json"] === true, quiet: input.options["quiet"] === true });
  });
}

interface ChatContext {
  client: ApiClient;
  conversation: import("./chat/conversation.ts").Conversation;
  agent: FlatAgent;
}

/**
 * Finds the coordinator or opens the record, finds the agent, and calls `work` with a conversation. Imports the slow modules
 * here, so that the prompt is on the screen before they load.
 */
async function withAgent(
  input: CommandInput,
  agent_name: string,
  reportInChat: ((message: string) => void) | null,
  work: (context: ChatContext, stateDirectory: string) => Promise<number>,
): Promise<number> {
  const { reportOnStderr, withCoordinator } = await import("./with-coordinator.ts");
  const { findProject } = await import("../local.ts");
  const { createConversation } = await import("./chat/conversation.ts");
  const { readParameters } = await import("./run-parameters.ts");
  const { findSession } = await import("./find-id.ts");
  const sessionArgument = readText(input.options, "session");
  const { locations } = await findProject(input.env, input.cwd);
  const projectDirectory = readText(input.options, "project-dir");
  const runnerScope = sessionArgument === undefined ? { agent: agent_name } : { session: sessionArgument };
  const startConversation = async (client: ApiClient): Promise<number> => {
    const agent = await findAgent(client, agent_name);
    if (agent.type === "procedural") throw cannotChat(agent);
    const conversation = createConversation(client, {
      agent,
      attended: input.options["no-attended"] !== true && (reportInChat !== null || input.options["attended"] === true),
      project_dir: projectDirectory === undefined ? undefined : resolve(input.cwd, projectDirectory),
      parameters: readParameters(input.extraOptions, undefined, agent.parameters_schema),
      parent_run_id: input.env["DROVER_RUN_ID"] || undefined,
    });
    if (sessionArgument !== undefined) {
      const session = await findSession(client, sessionArgument);
      if (session.agent_name !== agent_name) throw wrongAgent(session.session_id, session.agent_name);
      conversation.resume(session.session_id);
    }
    return work({ client, conversation, agent }, locations.stateDirectory);
  };
  return withCoordinator(input, runnerScope, startConversation, reportInChat ?? reportOnStderr);
}

async function findAgent(client: ApiClient, name: string): Promise<FlatAgent> {
  try {
    return await client.agents.get(name);
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== "DROVER-API-014") throw error;
    const names = (await client.agents.list()).items.map((agent) => agent.name);
    const suggestion = suggest(name, names);
    throw new RequestError({
      code: error.code,
      field: "AGENT",
      message: `Unknown agent: ${name}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
      next: "Run `drover agents list` to see the agents.",
      cause: error,
    });
  }
}

/** A procedural agent takes parameters, not messages. */
function cannotChat({ name, parameters_schema }: FlatAgent): RequestError {
  const properties: unknown = parameters_schema?.["properties"];
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const options = names.map((parameter) => ` --${parameter} ...`).join("");
  return new RequestError({
    code: "DROVER-USE-001",
    field: "AGENT",
    message: `${name} is a command that takes parameters, so you cannot chat with it.`,
    next: `Run it: drover run ${quoteForShell(name)}${options}`,
  });
}

function wrongAgent(session_id: string, agent: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "--session",
    message: `Session ${session_id} belongs to the agent ${agent}.`,
    next: `Chat with that agent: drover chat ${quoteForShell(agent)} --session ${session_id}`,
  });
}
