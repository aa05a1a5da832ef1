import { type Job, RunFailure } from "../../scaffold/define-executor.ts";
import type { ClientHost, PermissionMode, Turn } from "./definition.ts";

/**
 * The flags of each client for each permission mode; docs/clients.md shows this table. A run has no person to ask, so
 * clients deny calls that a mode would ask about.
 */
export const permissionFlags: Record<"claude" | "codex" | "gemini", Record<PermissionMode, readonly string[]>> = {
  claude: {
    default: ["--permission-mode=default"],
    acceptEdits: ["--permission-mode=acceptEdits"],
    bypassPermissions: ["--permission-mode=bypassPermissions"],
    plan: ["--permission-mode=plan"],
  },
  // Passed as config settings, because `resume` has no flags for them; `exec` never asks.
  codex: {
    default: ["--config=sandbox_mode=read-only"],
    acceptEdits: ["--config=sandbox_mode=workspace-write", "--config=sandbox_workspace_write.exclude_slash_tmp=true"],
    bypassPermissions: ["--dangerously-bypass-approvals-and-sandbox"],
    plan: ["--config=sandbox_mode=read-only"],
  },
  // gemini accepts no other mode in an untrusted directory; the rules in gemini-policy.ts differ by mode.
  gemini: {
    default: ["--approval-mode=default"],
    acceptEdits: ["--approval-mode=default"],
    bypassPermissions: ["--approval-mode=default"],
    plan: ["--approval-mode=default"],
  },
};

type Verdict = { allowed: true; reason: string } | { allowed: false; message: string };

/**
 * Decides whether a client may skip all permission checks. As root and without isolation it may do so only if the
 * operator allows it: in the profile, or with IS_SANDBOX=1 on a machine that is itself a sandbox.
 */
export async function checkFullAuto(
  config: Record<string, unknown>,
  { env, isRoot, isolation }: ClientHost,
): Promise<Verdict> {
  if (config["allow_full_auto"] === true) return { allowed: true, reason: "the profile's allow_full_auto" };
  if (env["IS_SANDBOX"] === "1") return { allowed: true, reason: "IS_SANDBOX=1" };
  if (!isRoot) return { allowed: true, reason: "the runner is not root" };
  const level = await isolation();
  if (level === "pid" || level === "sandbox") return { allowed: true, reason: `isolation ${level}` };
  return {
    allowed: false,
    message: `permissions.mode bypassPermissions would let the agent do anything as root, and isolation ${level} does not confine it. Do one of these: run as another user, use isolation pid or sandbox, set allow_full_auto in the profile's config, or set IS_SANDBOX=1 for the runner.`,
  };
}

/** Records why a run may skip all permission checks, or refuses it. */
export async function authorizeFullAuto(
  job: Job,
  turn: Pick<Turn, "mode" | "config">,
  host: ClientHost,
): Promise<void> {
  if (turn.mode !== "bypassPermissions") return;
  const verdict = await checkFullAuto(turn.config, host);
  if (!verdict.allowed) throw new RunFailure("refused", verdict.message);
  await job.context.emit({ type: "system", subtype: "full_auto", data: { why: verdict.reason } });
}
