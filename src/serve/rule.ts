import type { RunnerRow } from "../model/dispatch-ops.ts";
import type { Hook } from "../model/hook.ts";
import type { RunRow } from "../model/store.ts";
import type { StoredSchedule } from "../model/schedule.ts";
import type { Session } from "../model/session.ts";
import type { Execution } from "../model/store.ts";
import type { Token, TokenRole } from "../model/token.ts";
import type { Delivery, StoredWebhook } from "../model/webhook.ts";

/** The authenticated caller. With auth off, everyone on this machine is the local admin. */
export type Principal =
  | { kind: "token"; role: TokenRole; subject: string; token_id: string }
  /** A process inside a run, with its attempt token. Acts for the run's owner, but only on that run and its children. */
  | { kind: "attempt"; run: RunRow }
  /** A machine that may only exchange its enrolment token for a runner's token. */
  | { kind: "enrolment"; subject: string; label: string | null; hash: string };

/**
 * Who may call a route. Declared beside the route and enforced before its handler runs. A route without a rule does not
 * compile, and the access tests are generated from these declarations.
 */
export type Rule =
  | { open: true }
  /** No token: the handler verifies the request's signature. */
  | { signed: true }
  | {
      roles: readonly TokenRole[];
      /** The object that the path refers to. It is loaded first; callers who may not see it get a 404. */
      object?: ObjectKind;
      /** Also allows the token of a current attempt; with an object, only for its own run and that run's children. */
      attempt?: true;
      /** The response covers all owners, so a caller who sees only some of them is refused. */
      allOwners?: true;
    }
  | { enrolment: true };

export function needsNoToken(rule: Rule): rule is { open: true } | { signed: true } {
  return "open" in rule || "signed" in rule;
}

export type ObjectKind =
  | "run"
  | "session"
  | "execution"
  | "runner"
  | "token"
  | "schedule"
  | "hook"
  | "webhook"
  | "delivery";
export interface Objects {
  run: RunRow;
  session: Session;
  execution: Execution;
  runner: RunnerRow;
  token: Token;
  schedule: StoredSchedule;
  hook: Hook;
  webhook: StoredWebhook;
  delivery: Delivery;
}

export const people: readonly TokenRole[] = ["admin", "user", "viewer"];
export const submitters: readonly TokenRole[] = ["admin", "user"];
export const admins: readonly TokenRole[] = ["admin"];
/** An admin may act as a runner, so a single machine needs no enrolment. */
export const runners: readonly TokenRole[] = ["runner", "admin"];

/** The token id of every caller when auth is off. */
export const authOffId = "auth-off";

/** The owner of everything that this principal creates. */
export function getSubject(principal: Principal): string {
  return principal.kind === "attempt" ? principal.run.created_by : principal.subject;
}

/** The owner whose objects the principal can see; null means all owners. A viewer with the subject `*` sees everything. */
export function getVisibleOwner(principal: Principal): string | null {
  if (principal.kind !== "token") return getSubject(principal);
  if (principal.role === "admin") return null;
  return principal.role === "viewer" && principal.subject === "*" ? null : principal.subject;
}

export function canSee(principal: Principal, owner: string): boolean {
  const visible = getVisibleOwner(principal);
  return visible === null || visible === owner;
}

/**
 * Tokens of users and viewers belong to their subject. Others belong to admins: otherwise a user token could rotate an
 * admin or runner token of the same subject and obtain it.
 */
export function getTokenOwner({ role, subject }: Pick<Token, "role" | "subject">): string {
  return role === "user" || role === "viewer" ? subject : adminsOnly;
}

/**
 * A webhook that covers the runs of all users belongs to admins: otherwise a user token of the same subject could point
 * it at an address of its own.
 */
export function getWebhookOwner({ everyones, created_by }: Pick<StoredWebhook, "everyones" | "created_by">): string {
  return everyones ? adminsOnly : created_by;
}

/** Matches no subject, because subjects are never empty. */
const adminsOnly = "";
