import type * as z from "zod";
import type { Agent, agentSchema } from "../model/agent.ts";
import type { callerTriggers } from "../model/demands.ts";
import type { Decision } from "../model/executor.ts";
import type { Run } from "../model/run.ts";
import type { Effect } from "../model/tool.ts";

/** An MCP server that lives in the caller's process, as `createSdkMcpServer` of the Agent SDK makes them. */
export interface InProcessMcpServer {
  type: "sdk";
  name: string;
  instance: object;
}

/** The definition of an agent: the keys of an agent file. `executor` is `claude-sdk` unless it says otherwise. */
export type ResolvedAgentConfig = Omit<z.input<typeof agentSchema>, "type" | "mcp_servers"> & {
  type?: Agent["type"];
  mcp_servers?: Record<string, InProcessMcpServer | Record<string, unknown>>;
};

/** An agent of an agent file or a fleet file. `name` may be left out where the file defines one agent. */
export interface AgentFile {
  path: string;
  name?: string;
}

export type TriggerType = (typeof callerTriggers)[number];

/** A message of the Agent SDK, as the SDK made it. */
export interface SDKMessage {
  type: string;
  subtype?: string;
  session_id?: string;
  [field: string]: unknown;
}

export type MessageCallback = (message: SDKMessage) => void | Promise<void>;

/** What the agent asks before it uses a tool. */
export interface AgentQuestion {
  jobId: string;
  requestId: string;
  agentName: string;
  tool: string;
  input: unknown;
  effect?: Effect;
  /** JSON Schema that an edited input has to fit. */
  inputSchema?: Record<string, unknown>;
}

export type QuestionCallback = (question: AgentQuestion) => Decision | Promise<Decision>;

export interface RunnerOptions {
  /** A definition, a file, or the name of an agent that the coordinator knows. */
  agent: ResolvedAgentConfig | AgentFile | string;
  prompt: string;
  /** The state directory of Drover; made where there is none. Not used with a `coordinator`. */
  stateDir: string;
  /** What began the run: `manual` unless it says otherwise. */
  triggerType?: TriggerType;
  /** The name of the schedule that began it. */
  schedule?: string;
  /** Continue this session. */
  resume?: string;
  /** Continue a copy of this session. */
  fork?: string;
  /** How many turns of the session the copy keeps, from its beginning; all of them unless given. */
  forkAtTurn?: number;
  parameters?: Record<string, unknown>;
  /** Whether a person answers questions. True where there is an `onQuestion`. */
  attended?: boolean;
  /** Runs it through this coordinator instead of in this process; `environment`: DROVER_API_URL and DROVER_API_KEY. */
  coordinator?: { url: string; token?: string | null; allowHttp?: boolean } | "environment";
  /** Stops the run. */
  signal?: AbortSignal;
  /** The folder that relative paths, profiles and the Agent SDK are looked for in; the working directory unless given. */
  cwd?: string;
  /** The variables the agent is run with, and that `${VAR}` may name; those of this process unless given. */
  env?: Readonly<Record<string, string | undefined>>;
}

export interface RunnerCallbacks {
  /** Gets each message of the Agent SDK in order; the next one waits for it. */
  onMessage?: MessageCallback;
  /** Decides about the questions of an attended run. */
  onQuestion?: QuestionCallback;
}

export type RunnerOptionsWithCallbacks = RunnerOptions & RunnerCallbacks;

export interface RunnerResult {
  success: boolean;
  /** The id of the run. */
  jobId: string;
  sessionId?: string;
  /** At most 500 characters of what the agent said last. */
  summary?: string;
  /** Why it did not succeed. */
  error?: Error;
  durationSeconds?: number;
  /** What callbacks threw. They do not end the run. */
  callbackErrors?: Error[];
  /** The run as it is on the record; missing where it could not be read. */
  run?: Run;
}
