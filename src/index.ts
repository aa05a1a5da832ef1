// The public API of the package.
export { execute, type ExecuteOptions, start } from "./library/execute.ts";
export { AgentRunner, runAgent } from "./library/agent-runner.ts";
export { RunnerError, SDKError, SDKNotFoundError, SessionError } from "./library/errors.ts";
export type {
  AgentFile,
  AgentQuestion,
  InProcessMcpServer,
  MessageCallback,
  QuestionCallback,
  ResolvedAgentConfig,
  RunnerCallbacks,
  RunnerOptions,
  RunnerOptionsWithCallbacks,
  RunnerResult,
  SDKMessage,
  TriggerType,
} from "./library/types.ts";
export { HostError, RequestError } from "./model/errors.ts";
export { defineExecutor, RunFailure } from "./execute/scaffold/define-executor.ts";
export type { Cli, CliResult, Done, ExecutorDefinition, Job } from "./execute/scaffold/define-executor.ts";
export type { Executor, FoundFile, Invocation, Outcome, RunContext } from "./model/executor.ts";
export type { Decision } from "./model/executor.ts";
export type { RunEvent } from "./model/event.ts";
export type { Run } from "./model/run.ts";
export type { FailureReason } from "./model/states.ts";
export type {
  CaptureOptions,
  CapturedOutput,
  Command,
  CommandResult,
  ProcessEnd,
  Isolation,
  Limits,
  RunningProcess,
  StartOptions,
} from "./model/process.ts";
