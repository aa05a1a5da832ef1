import type { InProcessOptions } from "../../../model/in-process-options.ts";
import type { ClientHost } from "../clients/definition.ts";

/** `onMessage` gets each message once it is in the log; pieces of streamed text are not messages. */
export type ClaudeSdkHost = ClientHost & Partial<InProcessOptions>;

/** Where Claude Code works for one run. */
export interface Place {
  env: Record<string, string>;
  /** Claude Code's own folder. */
  folder: string;
  /** The HOME of the session's own that the folder lies in; null where it is the operator's. */
  ownHome: string | null;
}
