import type {
  ResolvedAgentConfig,
  AgentFile,
  RunnerCallbacks,
  RunnerOptions,
  RunnerOptionsWithCallbacks,
  RunnerResult,
} from "./types.ts";

/**
 * Runs an agent to its end, on the record of a state directory and without a port, or through a coordinator. A run that
 * fails is a result with its `error`. Rejects where no run could be made: a bad request is a RequestError, a session
 * that cannot be continued a SessionError.
 */
export async function runAgent(options: RunnerOptionsWithCallbacks): Promise<RunnerResult> {
  // all that dispatches and executes: whoever only imports the package does not wait for it
  const { runAgent: run } = await import("./run-agent.ts");
  return run(options);
}

/** Runs agents on the record of one state directory. Any number of runs may be under way at once. */
export class AgentRunner {
  readonly #stateDir: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
  }

  run(options: Omit<RunnerOptionsWithCallbacks, "stateDir">): Promise<RunnerResult> {
    return runAgent({ ...options, stateDir: this.#stateDir });
  }

  /** Continues a session with a new prompt. */
  resume(sessionId: string, agent: Resumable, prompt: string, options: ResumeOptions = {}): Promise<RunnerResult> {
    return this.run({ ...options, agent, prompt, resume: sessionId });
  }

  /** Continues a copy of a session; the original stays as it is. */
  fork(sessionId: string, agent: Resumable, prompt: string, options: ResumeOptions = {}): Promise<RunnerResult> {
    return this.run({ ...options, agent, prompt, fork: sessionId });
  }
}

type Resumable = ResolvedAgentConfig | AgentFile | string;
type ResumeOptions = Omit<RunnerOptions, "agent" | "prompt" | "stateDir" | "resume" | "fork"> & RunnerCallbacks;
