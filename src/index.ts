// The public API of the package.
export { execute } from "./process/execute.ts";
export { start } from "./process/start.ts";
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
