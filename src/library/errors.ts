import type { SDKMessage } from "./types.ts";

/** The names for which `instanceof` is true, by class. It compares names, because the bundle that runs agents has its own copy of them. */
const matchingNames: Readonly<Record<string, readonly string[]>> = {
  RunnerError: ["RunnerError", "SDKError", "SessionError"],
  SDKError: ["SDKError"],
  SessionError: ["SessionError"],
  SDKNotFoundError: ["SDKNotFoundError"],
};

function isInstance(type: { name: string }, value: unknown): boolean {
  const names = matchingNames[type.name];
  if (names !== undefined) return value instanceof Error && names.includes(value.name);
  return Function.prototype[Symbol.hasInstance].call(type, value);
}

/** A run did not succeed. `jobId` is empty if the run was not created. */
export class RunnerError extends Error {
  override readonly name: string = "RunnerError";
  readonly jobId: string;
  readonly agentName: string;
  declare readonly cause?: Error;
  constructor(message: string, jobId: string, agentName: string, cause?: Error) {
    super(message, cause === undefined ? undefined : { cause });
    this.jobId = jobId;
    this.agentName = agentName;
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, value);
  }
}

/** The Claude Agent SDK, or the model behind it, reported a failure. */
export class SDKError extends RunnerError {
  override readonly name = "SDKError";
  /** The SDK message that reported the failure, if any. */
  readonly sdkMessage?: SDKMessage;
  constructor(message: string, jobId: string, agentName: string, sdkMessage?: SDKMessage) {
    super(message, jobId, agentName);
    if (sdkMessage !== undefined) this.sdkMessage = sdkMessage;
  }
}

/** The session cannot be continued: it is unknown, expired, busy, or belongs to another agent or user. */
export class SessionError extends RunnerError {
  override readonly name = "SessionError";
  readonly sessionId?: string;
  constructor(message: string, jobId: string, agentName: string, sessionId?: string) {
    super(message, jobId, agentName);
    if (sessionId !== undefined) this.sessionId = sessionId;
  }
}

/** The Claude Agent SDK package is not installed. */
export class SDKNotFoundError extends Error {
  override readonly name = "SDKNotFoundError";
  constructor(message = "Claude Agent SDK not found. Install it: npm install @anthropic-ai/claude-agent-sdk") {
    super(message);
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, value);
  }
}
