import type { Agent } from "./agent.ts";
import type { NumberedEvent } from "./event.ts";
import type { Run } from "./run.ts";

/** A new run, in the state its first events leave it in. */
export interface CreateRun {
  op: "create_run";
  run: Run;
  events: NumberedEvent[];
  /**
   * The agent as it is now, kept with the run: makes it one that runners claim. Its session is made
   * with it, and its log begins with `status: pending`.
   */
  agent?: Agent;
  /** Where the agent is a runner's own. */
  agent_runner_id?: string;
  /** Goes before the agent's. */
  timeout_seconds?: number;
  /** The same key and fingerprint again: the run that was made then. Another fingerprint is a conflict. */
  idempotency?: { subject: string; key: string; fingerprint: string };
  /** A command of this attempt asks for it: refused as `fenced` where the attempt is over or being stopped. */
  inside?: { run_id: string; attempt: number };
  /** What the run was asked with, encrypted, where its parameters or prompt are redacted. Kept until it ends. */
  sealed?: string;
  /** Webhooks with scope `named` that are notified of this run. */
  webhooks?: readonly string[];
  /**
   * What made it is settled with it, so that it can make no second run: the keys of a hook's delivery, which are kept until
   * `until` (milliseconds), or what follows a run that ended. Settled before: `repeated`.
   */
  settles?: { hook: string; keys: readonly string[]; until: number } | { chain_of: string };
}
