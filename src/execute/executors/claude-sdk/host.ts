import type { InProcessOptions } from "../../../model/in-process-options.ts";
import type { ClientHost } from "../clients/definition.ts";

/** `onMessage` receives each message after it is logged. It does not receive streamed pieces of text. */
export type ClaudeSdkHost = ClientHost & Partial<InProcessOptions>;

/** The environment of Claude Code for one run. */
export interface ClaudeEnvironment {
  env: Record<string, string>;
  /** Claude Code's own directory. */
  configDir: string;
  /** The session's own HOME, which contains `configDir`; null if the run uses the operator's HOME. */
  sessionHome: string | null;
}
