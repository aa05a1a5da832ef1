import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import type { ClientHost, PermissionMode, Turn } from "./definition.ts";

/**
 * What each permission mode is for each client, as words of its command line; docs/clients.md shows this table.
 * A run nobody attends cannot be asked: what a mode would ask about is denied.
 */
export const permissionFlags: Record<"claude" | "codex" | "gemini", Record<PermissionMode, readonly string[]>> = {
  claude: {
    default: ["--permission-mode=default"],
    acceptEdits: ["--permission-mode=acceptEdits"],
    bypassPermissions: ["--permission-mode=bypassPermissions"],
    plan: ["--permission-mode=plan"],
  },
  // as settings, since a session that goes on takes no other words for them; `exec` never asks anybody
  codex: {
    default: ["--config=sandbox_mode=read-only"],
    acceptEdits: ["--config=sandbox_mode=workspace-write", "--config=sandbox_workspace_write.exclude_slash_tmp=true"],
    bypassPermissions: ["--dangerously-bypass-approvals-and-sandbox"],
    plan: ["--config=sandbox_mode=read-only"],
  },
  // in a folder it does not trust it takes no other mode; gemini-policy.ts has what each of ours allows
  gemini: {
    default: ["--approval-mode=default"],
    acceptEdits: ["--approval-mode=default"],
    bypassPermissions: ["--approval-mode=default"],
    plan: ["--approval-mode=default"],
  },
};

type Verdict = { allowed: true; why: string } | { allowed: false; message: string };

/**
 * May a client do whatever it likes here? As root on a host it is not kept apart from, only where the operator
 * has said so: in the profile, or by IS_SANDBOX=1 for a machine that is nothing but a sandbox.
 */
export async function fullAuto(
  config: Record<string, unknown>,
  { env, isRoot, isolation }: ClientHost,
): Promise<Verdict> {
  if (config["allow_full_auto"] === true) return { allowed: true, why: "the profile's allow_full_auto" };
  if (env["IS_SANDBOX"] === "1") return { allowed: true, why: "IS_SANDBOX=1" };
  if (!isRoot) return { allowed: true, why: "the runner is not root" };
  const level = await isolation();
  if (level === "pid" || level === "sandbox") return { allowed: true, why: `isolation ${level}` };
  return {
    allowed: false,
    message: `permissions.mode bypassPermissions would let the agent do anything as root, and isolation ${level} keeps it from nothing. Run as another user, with isolation pid or sandbox, or set allow_full_auto in the profile's config (or IS_SANDBOX=1 for the runner).`,
  };
}

/** Puts on the record why a run may do anything, or refuses it. */
export async function allowFullAuto(job: Job, turn: Pick<Turn, "mode" | "config">, host: ClientHost): Promise<void> {
  if (turn.mode !== "bypassPermissions") return;
  const verdict = await fullAuto(turn.config, host);
  if (!verdict.allowed) throw new RunFailure("refused", verdict.message);
  await job.context.emit({ type: "system", subtype: "full_auto", data: { why: verdict.why } });
}
