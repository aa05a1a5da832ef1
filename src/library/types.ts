import type * as z from "zod";
import type { Agent, agentSchema } from "../model/agent.ts";
import type { callerTriggers } from "../model/demands.ts";
import type { Decision } from "../model/executor.ts";
import type { Run } from "../model/run.ts";
import type { Effect } from "../model/tool.ts";

/** An MCP server in the caller's process, as created by `createSdkMcpServer` of the Agent SDK. */
export interface InProcessMcpServer {
  type: "sdk";
  name: string;
  instance: object;
}

/** The definition of an agent, with the keys of an agent file. `executor` defaults to `claude-sdk`. */
export type ResolvedAgentConfig = Omit<z.input<typeof agentSchema>, "type" | "mcp_servers"> & {
  type?: Agent["type"];
  mcp_servers?: Record<string, InProcessMcpServer | Record<string, unknown>>;
};

/** An agent in an agent file or a fleet file. `name` is optional if the file defines a single agent. */
export interface AgentFile {
  path: string;
  name?: string;
}

export type TriggerType = (typeof callerTriggers)[number];

/** An unchanged message of the Agent SDK. */
export interface SDKMessage {
  type: string;
  subtype?: string;
  session_id?: string;
  [field: string]: unknown;
}

export type MessageCallback = (message: SDKMessage) => void | Promise<void>;

/** The agent's request for permission to use a tool. */
export interface AgentQuestion {
  jobId: string;
  requestId: string;
  agentName: string;
  tool: string;
  input: unknown;
  effect?: Effect;
  /** The JSON Schema that an edited input must match. */
  inputSchema?: Record<string, unknown>;
}

export type QuestionCallback = (question: AgentQuestion) => Decision | Promise<Decision>;

export interface RunnerOptions {
  /** A definition, a file, or the name of an agent that the coordinator knows. */
  agent: ResolvedAgentConfig | AgentFile | string;
  /** Required unless the agent is a command. */
  prompt?: string;
  /** Drover's state directory, created if missing. Not used with a `coordinator`. */
  stateDir: string;
  /** The run's trigger. Defaults to `manual`. */
  triggerType?: TriggerType;
  /** The name of the schedule that triggered the run. */
  schedule?: string;
  /** Continue this session. */
  resume?: string;
  /** Continue a copy of this session. */
  fork?: string;
  /** How many turns from the start of the session the copy keeps. Defaults to all. */
  forkAtTurn?: number;
  parameters?: Record<string, unknown>;
  /** Whether someone answers questions. Defaults to true if `onQuestion` is set. */
  attended?: boolean;
  /**
   * Runs the agent through this coordinator instead of in this process. `environment` uses DROVER_API_URL and
   * DROVER_API_KEY.
   */
  coordinator?: { url: string; token?: string | null; allowHttp?: boolean } | "environment";
  /** Stops the run. */
  signal?: AbortSignal;
  /** The directory for relative paths, profiles and the Agent SDK. Defaults to the working directory. */
  cwd?: string;
  /** The variables the agent runs with and that `${VAR}` may name. Defaults to those of this process. */
  env?: Readonly<Record<string, string | undefined>>;
}

export interface RunnerCallbacks {
  /** Called with each message of the Agent SDK, in order. The next message waits until it returns. */
  onMessage?: MessageCallback;
  /** Answers the questions of an attended run. */
  onQuestion?: QuestionCallback;
}

export type RunnerOptionsWithCallbacks = RunnerOptions & RunnerCallbacks;

export interface RunnerResult {
  success: boolean;
  /** The id of the run. */
  jobId: string;
  sessionId?: string;
  /** At most 500 characters of the agent's last message. */
  summary?: string;
  /** The reason, if the run did not succeed. */
  error?: Error;
  durationSeconds?: number;
  /** Errors thrown by callbacks. They do not stop the run. */
  callbackErrors?: Error[];
  /** The recorded run. Missing if it could not be read. */
  run?: Run;
}
