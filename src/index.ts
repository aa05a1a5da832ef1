// The public API of the package.
export { execute } from "./process/execute.ts";
export { start } from "./process/start.ts";
export { defineExecutor, RunFailure } from "./execute/scaffold/define-executor.ts";
export type { Cli, CliResult, Done, ExecutorDefinition, Job } from "./execute/scaffold/define-executor.ts";
export type { Executor, FoundFile, Invocation, Outcome, RunContext } from "./model/executor.ts";
export type { RunEvent } from "./model/event.ts";
export type { FailureReason } from "./model/states.ts";
export type {
  CaptureOptions,
  Captured,
  Command,
  CommandResult,
  Ended,
  Isolation,
  Limits,
  Running,
  StartOptions,
} from "./model/process.ts";
