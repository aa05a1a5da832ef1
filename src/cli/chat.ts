import { resolve } from "node:path";
import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { ApiClient, FlatAgent } from "../wire/client.ts";
import { isTerminal, write } from "./io.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";
import { styleOf } from "./terminal/style.ts";

export const chatCommand: CommandSpec = {
  name: "chat",
  summary: "talk with an agent; every message is a run of one session, on the record",
  takes: "AGENT [--PARAMETER VALUE...]",
  examples: [
    ["drover chat writer", "at a terminal; /help lists what you can do there"],
    ["drover chat writer --session 019a3f", "go on with a session"],
    ['echo "write a haiku" | drover chat writer', "each line of stdin is a message"],
    ["drover chat writer --json < messages.txt", "every event as a line of JSON"],
  ],
  options: {
    session: { value: "ID", about: "go on with this session" },
    "project-dir": { value: "DIR", about: "where a new session works" },
    attended: { about: "send questions to the inbox, also without a terminal" },
    "no-attended": { about: "deny questions instead of asking them" },
  },
  takesExtraOptions: true,
  run: chat,
};

async function chat(input: CommandInput): Promise<number> {
  const [agent_name, ...more] = [...input.positionals, ...(input.rest ?? [])];
  if (!agent_name) throw usage("Name the agent to talk with.", "chat", "AGENT");
  if (more.length > 0) throw usage(`${more[0]} is one word too many: say it in the chat.`, "chat", more[0]);
  const onTerminal = isTerminal(0) && isTerminal(1) && !input.options["json"] && !input.options["no-input"];
  return onTerminal ? atTerminal(input, agent_name) : inLines(input, agent_name);
}

async function atTerminal(input: CommandInput, agent_name: string): Promise<number> {
  const { findLocal } = await import("../local.ts");
  const { resolveTrust } = await import("./resolve-trust.ts");
  // while it is still an ordinary terminal; what is left out is said in the chat
  const looks = { profiles: true, agents: true };
  await resolveTrust(input, await findLocal(input.env, input.cwd), looks, { tell: () => undefined });
  const { openTerminalChat } = await import("./chat/terminal-chat.ts");
  const style = styleOf(1, input.env);
  const chatting = openTerminalChat(agent_name, style);
  let resume = "";
  try {
    const report = (message: string): void => chatting.tell(`drover: ${message}`);
    return await withAgent(input, agent_name, report, async (partner, stateDirectory) => {
      const { openHistory } = await import("./chat/history-file.ts");
      chatting.setHistory(openHistory(stateDirectory, report));
      const { session_id } = partner.conversation;
      if (session_id !== null) {
        const { showLast } = await import("./chat/slash-commands.ts");
        await showLast({ client: partner.client, tell: (line) => chatting.tell(line), style }, session_id);
      }
      await chatting.talkTo(partner);
      if (partner.conversation.session_id)
        resume = `Go on: drover chat ${shellQuote(agent_name)} --session ${partner.conversation.session_id}\n`;
      return 0;
    });
  } finally {
    chatting.close();
    if (!input.options["quiet"]) write(2, resume);
  }
}

function inLines(input: CommandInput, agent_name: string): Promise<number> {
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

/** Everything that takes time to load comes after the prompt. */
async function withAgent(
  input: CommandInput,
  agent_name: string,
  onTerminal: ((message: string) => void) | null,
  work: (partner: ChatContext, stateDirectory: string) => Promise<number>,
): Promise<number> {
  const { reportOnStderr, withCoordinator } = await import("./with-coordinator.ts");
  const { findLocal } = await import("../local.ts");
  const { createConversation } = await import("./chat/conversation.ts");
  const { readParameters } = await import("./run-parameters.ts");
  const { findSession } = await import("./find-id.ts");
  const given = text(input.options, "session");
  const { places } = await findLocal(input.env, input.cwd);
  const project = text(input.options, "project-dir");
  const wanted = given === undefined ? { agent: agent_name } : { session: given };
  const meet = async (client: ApiClient): Promise<number> => {
    const agent = await findAgent(client, agent_name);
    if (agent.type === "procedural") throw cannotTalk(agent);
    const conversation = createConversation(client, {
      agent,
      attended: input.options["no-attended"] !== true && (onTerminal !== null || input.options["attended"] === true),
      project_dir: project === undefined ? undefined : resolve(input.cwd, project),
      parameters: readParameters(input.extraOptions, undefined, agent.parameters_schema),
      parent_run_id: input.env["DROVER_RUN_ID"] || undefined,
    });
    if (given !== undefined) {
      const session = await findSession(client, given);
      if (session.agent_name !== agent_name) throw ofAnother(session.session_id, session.agent_name);
      conversation.resume(session.session_id);
    }
    return work({ client, conversation, agent }, places.stateDirectory);
  };
  return withCoordinator(input, wanted, meet, onTerminal ?? reportOnStderr);
}

async function findAgent(client: ApiClient, name: string): Promise<FlatAgent> {
  try {
    return await client.agents.get(name);
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== "DROVER-API-014") throw error;
    const names = (await client.agents.list()).items.map((one) => one.name);
    const near = suggest(name, names);
    throw new RequestError({
      code: error.code,
      field: "AGENT",
      message: `There is no agent ${name}.${near ? ` Did you mean ${near}?` : ""}`,
      next: "`drover agents list` shows the agents.",
      cause: error,
    });
  }
}

/** A command takes parameters, not words. */
function cannotTalk({ name, parameters_schema }: FlatAgent): RequestError {
  const properties: unknown = parameters_schema?.["properties"];
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  const options = names.map((one) => ` --${one} ...`).join("");
  return new RequestError({
    code: "DROVER-USE-001",
    field: "AGENT",
    message: `${name} is a command: it takes parameters, and nobody can talk with it.`,
    next: `Run it: drover run ${shellQuote(name)}${options}`,
  });
}

function ofAnother(session_id: string, agent: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "--session",
    message: `The session ${session_id} is of the agent ${agent}.`,
    next: `Conversation with that one: drover chat ${shellQuote(agent)} --session ${session_id}`,
  });
}
