/// <reference types="node" preserve="true" />
// The public API of the package. The reference lets TypeScript find the types of Node without a setting.
export { connect } from "./library/connect.ts";
export type { CoordinatorAddress, LocalState } from "./library/connect-options.ts";
export type { Drover, SessionMessage } from "./library/drover.ts";
export { execute, type ExecuteResult, start } from "./library/execute.ts";
export type { ExecuteOptions } from "./library/execute-options.ts";
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
export { DroverError, type ErrorCode, HostError, RequestError } from "./model/errors.ts";
export { defineExecutor, RunFailure } from "./execute/scaffold/define-executor.ts";
export type { Cli, CliResult, Done, ExecutorDefinition, Job } from "./execute/scaffold/define-executor.ts";
export type { Executor, FoundFile, Invocation, Outcome, RunContext } from "./model/executor.ts";
export type { Decision } from "./model/executor.ts";
export type { RunEvent, StoredEvent } from "./model/event.ts";
export type { StoredFile } from "./model/file.ts";
export type { Question } from "./model/question.ts";
export type { Run } from "./model/run.ts";
export type { Session } from "./model/session.ts";
export type { FailureReason, RunStatus } from "./model/states.ts";
export type { Submission } from "./wire/client.ts";
export type { FollowOptions } from "./wire/follow-events.ts";
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
