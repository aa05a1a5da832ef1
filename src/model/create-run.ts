import type { Agent } from "./agent.ts";
import type { NumberedEvent } from "./event.ts";
import type { Run } from "./run.ts";

/** Creates a run in the state that its first events lead to. */
export interface CreateRun {
  op: "create_run";
  run: Run;
  events: NumberedEvent[];
  /**
   * A snapshot of the agent, stored with the run. It makes the run claimable by runners, creates its session and starts
   * its log with `status: pending`.
   */
  agent?: Agent;
  /** The runner that offers the agent, if one does. */
  agent_runner_id?: string;
  /** Overrides the agent's timeout. */
  timeout_seconds?: number;
  /** A repeated key returns the run created before, or a conflict if the fingerprint differs. */
  idempotency?: { subject: string; key: string; fingerprint: string };
  /** The attempt whose command submits this run. Rejected as `fenced` if that attempt is over or being stopped. */
  parent_attempt?: { run_id: string; attempt: number };
  /** The original parameters and prompt, encrypted, if the stored ones are redacted. Kept until the run ends. */
  sealed?: string;
  /** Webhooks with scope `named` to notify about this run. */
  webhooks?: readonly string[];
  /**
   * The trigger that this run settles, so that it cannot create a second run: the keys of a hook delivery, remembered
   * until `until` (milliseconds), or the chain of a finished run. An already settled trigger is the conflict `repeated`.
   */
  settles?: { hook: string; keys: readonly string[]; until: number } | { chain_of: string };
}
