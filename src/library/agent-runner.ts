import type {
  ResolvedAgentConfig,
  AgentFile,
  RunnerCallbacks,
  RunnerOptions,
  RunnerOptionsWithCallbacks,
  RunnerResult,
} from "./types.ts";

/**
 * Runs an agent until it finishes: in this process, with the record in a state directory, or through a coordinator. A
 * failed run resolves to a result with an `error`. Rejects only if the run could not be created: with a RequestError
 * for a bad request, or with a SessionError for a session that cannot be continued.
 */
export async function runAgent(options: RunnerOptionsWithCallbacks): Promise<RunnerResult> {
  // Import this only now, so that importing the package stays fast.
  const { runAgent: run } = await import("./run-agent.ts");
  return run(options);
}

/** Runs agents with the record in one state directory. Any number of runs may be active at the same time. */
export class AgentRunner {
  readonly #stateDir: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
  }

  run(options: Omit<RunnerOptionsWithCallbacks, "stateDir">): Promise<RunnerResult> {
    return runAgent({ ...options, stateDir: this.#stateDir });
  }

  /** Continues a session with a new prompt. */
  resume(sessionId: string, agent: AgentReference, prompt: string, options: ResumeOptions = {}): Promise<RunnerResult> {
    return this.run({ ...options, agent, prompt, resume: sessionId });
  }

  /** Continues a copy of a session. The original is not changed. */
  fork(sessionId: string, agent: AgentReference, prompt: string, options: ResumeOptions = {}): Promise<RunnerResult> {
    return this.run({ ...options, agent, prompt, fork: sessionId });
  }
}

type AgentReference = ResolvedAgentConfig | AgentFile | string;
type ResumeOptions = Omit<RunnerOptions, "agent" | "prompt" | "stateDir" | "resume" | "fork"> & RunnerCallbacks;
