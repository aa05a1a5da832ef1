import { tokenRejection, type Token } from "../model/token.ts";
import type { ServeDeps } from "./deps.ts";
import { Refusal } from "./refusal.ts";
import { authOffId, type Principal } from "./rule.ts";
import { hashToken } from "./token-text.ts";

type AuthDeps = Pick<ServeDeps, "store" | "attemptTokens" | "now" | "authEnabled">;

/** Who sent this credential. Asked of the store each time, so that a revoked token is refused at once. */
export async function authenticate(credential: string | undefined, deps: AuthDeps): Promise<Principal> {
  if (!deps.authEnabled && credential === undefined)
    return { kind: "token", role: "admin", subject: "local", token_id: authOffId };
  const [, scheme = "", token] = /^(Bearer|Cookie) ([\w.-]{1,300})$/i.exec(credential ?? "") ?? [];
  if (token === undefined) throw unauthorized("Send a token: Authorization: Bearer drv_...");
  if (token.startsWith("drva_")) return attemptPrincipal(token, deps);
  const hash = hashToken(token);
  const known = await deps.store.read.token(hash);
  // what a cookie holds is good as a cookie only, where the Origin of a write is checked, and a link is no token at all
  const inPlace = known?.kind === "browser" ? scheme === "Cookie" : scheme !== "Cookie" && known?.kind !== "link";
  if (known === null || !inPlace) throw unauthorized("This token is not known here.");
  refuseStale(known, deps.now());
  const { kind, role, subject, label, token_id } = known;
  return kind === "enrolment" ? { kind, subject, label, hash } : { kind: "token", role, subject, token_id };
}

/** Valid while that attempt is the current one of a run that has not ended. */
async function attemptPrincipal(token: string, deps: AuthDeps): Promise<Principal> {
  const claim = deps.attemptTokens.read(token);
  if (claim === null) throw unauthorized("This token is not known here.");
  const run = await deps.store.read.run_row(claim.run_id);
  if (run === null || run.attempt !== claim.attempt || !held.has(run.status))
    throw stale("The attempt of this token has ended.");
  return { kind: "attempt", run };
}

const held: ReadonlySet<string> = new Set(["claimed", "running", "waiting", "stopping"]);

function refuseStale(token: Token, now: Date): void {
  const end = tokenRejection(token, now.toISOString());
  if (end === "revoked") throw stale("This token was revoked.");
  if (end === "expired") throw stale(`This token expired at ${token.expires_at}.`);
}

function stale(detail: string): Refusal {
  return new Refusal(401, "DROVER-API-010", detail, {
    ...refusalOptions,
    next: "Ask an admin for another: `drover tokens create`. Where it is the one in the file `token` of the coordinator's own state directory, remove that file and start the coordinator again.",
  });
}

function unauthorized(detail: string): Refusal {
  return new Refusal(401, "DROVER-API-009", detail, {
    ...refusalOptions,
    next: "The admin token is in the file `token` of the state directory; `drover tokens create` makes others.",
  });
}

const refusalOptions = {
  faults: [{ path: "header.authorization", message: "no valid token" }],
  headers: { "www-authenticate": 'Bearer realm="drover"' },
};
