import { isAssigned } from "../model/states.ts";
import { getTokenRejection, type Token } from "../model/token.ts";
import type { ServeDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";
import { authOffId, type Principal } from "./rule.ts";
import { hashToken } from "./token-text.ts";

type AuthDeps = Pick<ServeDeps, "store" | "attemptTokens" | "now" | "authEnabled">;

/** Identifies the caller. Reads the store every time, so a revoked token is refused at once. */
export async function authenticate(credential: string | undefined, deps: AuthDeps): Promise<Principal> {
  if (!deps.authEnabled && credential === undefined)
    return { kind: "token", role: "admin", subject: "local", token_id: authOffId };
  const [, scheme = "", token] = /^(Bearer|Cookie) ([\w.-]{1,300})$/i.exec(credential ?? "") ?? [];
  if (token === undefined) throw unauthorized("Send a token: Authorization: Bearer drv_...");
  if (token.startsWith("drva_")) return authenticateAttempt(token, deps);
  const hash = hashToken(token);
  const stored = await deps.store.read.token(hash);
  // A browser token is valid only as a cookie, because only cookies get the Origin check. A sign-in link is not a token.
  const schemeFits = stored?.kind === "browser" ? scheme === "Cookie" : scheme !== "Cookie" && stored?.kind !== "link";
  if (stored === null || !schemeFits) throw unauthorized("This coordinator does not know this token.");
  refuseInvalid(stored, deps.now());
  const { kind, role, subject, label, token_id } = stored;
  return kind === "enrolment" ? { kind, subject, label, hash } : { kind: "token", role, subject, token_id };
}

/** Accepts the token while its attempt is the current one of a run that has not ended. */
async function authenticateAttempt(token: string, deps: AuthDeps): Promise<Principal> {
  const attempt = deps.attemptTokens.verify(token);
  if (attempt === null) throw unauthorized("This coordinator does not know this token.");
  const run = await deps.store.read.run_row(attempt.run_id);
  if (run === null || run.attempt !== attempt.attempt || !isAssigned(run.status))
    throw staleToken("The run attempt that this token belongs to has ended.");
  return { kind: "attempt", run };
}

function refuseInvalid(token: Token, now: Date): void {
  const rejection = getTokenRejection(token, now.toISOString());
  if (rejection === "revoked") throw staleToken("This token was revoked.");
  if (rejection === "expired") throw staleToken(`This token expired at ${token.expires_at}.`);
}

function staleToken(detail: string): Refusal {
  return new Refusal(401, "DROVER-API-010", detail, {
    ...refusalOptions,
    next: "Ask an admin for a new token (`drover tokens create`). If this is the token in the coordinator's own state directory, remove its file `record/token` and restart the coordinator.",
  });
}

export function unauthorized(detail: string): Refusal {
  return new Refusal(401, "DROVER-API-009", detail, {
    ...refusalOptions,
    next: "The admin token is in the file `record/token` of the state directory; `drover tokens create` creates others.",
  });
}

const refusalOptions = {
  faults: [{ path: "header.authorization", message: "no valid token" }],
  headers: { "www-authenticate": 'Bearer realm="drover"' },
};
