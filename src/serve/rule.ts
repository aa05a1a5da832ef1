import type { RunnerRow } from "../model/dispatch-ops.ts";
import type { Hook } from "../model/hook.ts";
import type { RunRow } from "../model/store.ts";
import type { StoredSchedule } from "../model/schedule.ts";
import type { Session } from "../model/session.ts";
import type { Execution } from "../model/store.ts";
import type { Token, TokenRole } from "../model/token.ts";
import type { Delivery, Webhook } from "../model/webhook.ts";

/** Who asks. `auth: off` makes everyone on this machine the local admin. */
export type Principal =
  | { kind: "token"; role: TokenRole; subject: string; token_id: string }
  /** Something inside a run, with the token of its attempt: acts for the run's owner, on that run and its children only. */
  | { kind: "attempt"; run: RunRow }
  /** A runner that has nothing but the right to enroll. */
  | { kind: "enrolment"; subject: string; label: string | null; hash: string };

/**
 * What a route demands, declared beside it and enforced before its handler is reached. A route without
 * one does not compile, and the table of who may do what is tested from these declarations.
 */
export type Rule =
  | { open: true }
  /** No token: the handler checks the signature of the request itself. */
  | { signed: true }
  | {
      roles: readonly TokenRole[];
      /** The object the path names: loaded first, and 404 for whoever may not see it. */
      object?: ObjectKind;
      /** Tokens of a current attempt pass too; with an object, only for their own run and those it has started. */
      attempt?: true;
      /** It tells of everyone's: not for one who sees only some. */
      everyones?: true;
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
  webhook: Webhook;
  delivery: Delivery;
}

export const anyone: readonly TokenRole[] = ["admin", "user", "viewer"];
export const submitters: readonly TokenRole[] = ["admin", "user"];
export const admins: readonly TokenRole[] = ["admin"];
/** An admin may act as a runner, so that one machine needs no enrolment. */
export const runners: readonly TokenRole[] = ["runner", "admin"];

/** Of the principal that everyone is where auth is off. */
export const authOffId = "auth-off";

/** The name under which things are made. */
export function subjectOf(principal: Principal): string {
  return principal.kind === "attempt" ? principal.run.created_by : principal.subject;
}

/** null: everything. Else whose objects are seen. A viewer for everything has the subject `*`. */
export function seesOnly(principal: Principal): string | null {
  if (principal.kind !== "token") return subjectOf(principal);
  if (principal.role === "admin") return null;
  return principal.role === "viewer" && principal.subject === "*" ? null : principal.subject;
}

export function sees(principal: Principal, owner: string): boolean {
  const only = seesOnly(principal);
  return only === null || only === owner;
}

/**
 * Whose a token is: its subject's, where it can do no more than a user of that name. Otherwise whoever has the lesser
 * one could rotate the greater, and would have it.
 */
export function tokenOwner({ role, subject }: Pick<Token, "role" | "subject">): string {
  return role === "user" || role === "viewer" ? subject : adminsOnly;
}

/** No subject is empty. */
const adminsOnly = "";
