import { createDerivedTokenId, getRootTokenId, type Token } from "../../model/token.ts";
import type { SystemDeps } from "../deps.ts";
import { Refusal } from "../refusal.ts";
import { created, Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people, authOffId, type Principal } from "../rule.ts";
import { hashToken, newTokenText } from "../token-text.ts";

const route = createRouteBuilder<SystemDeps>();

const linkLifetimeMs = 10 * 60_000;
const sessionLifetimeMs = 30 * 86_400_000;

export const signInRoutes = [
  route("GET /me", {
    rule: { roles: people },
    async handle({ deps: { version, engine, startedAt }, principal }) {
      const { subject, role, token_id } = requireTokenPrincipal(principal);
      const by = token_id === authOffId ? "auth_off" : isBrowserToken(token_id) ? "browser" : "bearer";
      return { subject, role, token_id, by, version, engine, started_at: startedAt.toISOString() } as const;
    },
  }),
  route("POST /sign-in/links", {
    rule: { roles: people },
    async handle({ deps, principal }) {
      const { subject, role, token_id } = requireTokenPrincipal(principal);
      if (token_id === authOffId) return created({ code: null, expires_at: null });
      // Otherwise a stolen cookie could be renewed forever.
      if (isBrowserToken(token_id))
        throw new Refusal(403, "DROVER-API-011", "A browser session cannot create sign-in links.", {
          next: "Run `drover ui` on the machine that has the token.",
        });
      const text = newTokenText("drvl_");
      const now = deps.now();
      const expires_at = new Date(now.getTime() + linkLifetimeMs).toISOString();
      const link: Token = {
        ...buildToken("link", "sign-in link", subject, now),
        token_id: createDerivedTokenId(token_id, deps.newId()),
        role,
        subject,
        expires_at,
      };
      const [stored] = await deps.store.apply([{ op: "put_token", token: link, hash: hashToken(text) }]);
      if (!stored.ok) throw new Error(`a new sign-in link was ${stored.conflict}`);
      return created({ code: text, expires_at });
    },
  }),
  route("POST /sign-in", {
    rule: { open: true },
    async handle({ deps, headers: { origin }, body: { code } }) {
      const text = newTokenText("drvb_");
      const now = deps.now();
      const [result] = await deps.store.apply([
        {
          op: "use_link",
          hash: hashToken(code),
          at: now.toISOString(),
          id: deps.newId(),
          token: {
            ...buildToken("browser", "browser", "sign-in link", now),
            expires_at: new Date(now.getTime() + sessionLifetimeMs).toISOString(),
          },
          token_hash: hashToken(text),
        },
      ]);
      // A browser on TLS must not send the cookie over plain HTTP. Loopback has no TLS.
      const secureAttribute = origin?.startsWith("https:") ? "; Secure" : "";
      if (result.ok)
        return createCookieReply(`${deps.cookieName}=${text}; Max-Age=${sessionLifetimeMs / 1000}`, secureAttribute);
      const problem =
        result.conflict === "not_found" ? "is unknown to this coordinator" : conflictTexts[result.conflict];
      throw new Refusal(409, "DROVER-WEB-001", `This sign-in link ${problem}.`, {
        faults: [{ path: "body.code", message: result.conflict }],
        next: "Get a new one: drover ui",
      });
    },
  }),
  route("DELETE /sign-in", {
    rule: { roles: people },
    async handle({ deps, principal }) {
      const { token_id } = requireTokenPrincipal(principal);
      if (isBrowserToken(token_id)) {
        await deps.store.apply([{ op: "revoke_token", token_id, at: deps.now().toISOString() }]);
        await deps.recheckTokens();
      }
      return createCookieReply(`${deps.cookieName}=; Max-Age=0`);
    },
  }),
];

const conflictTexts = {
  used: "was already used; each link works once",
  revoked: "was revoked together with the token that created it",
  expired: "has expired; each link is valid for ten minutes",
  exists: "cannot be used",
};

/** Scripts and other sites cannot read the cookie. Without a Domain attribute, other hosts cannot either. */
function createCookieReply(cookie: string, secureAttribute = ""): Reply<undefined> {
  return new Reply(204, undefined, { "set-cookie": `${cookie}; Path=/; HttpOnly; SameSite=Strict${secureAttribute}` });
}

function isBrowserToken(token_id: string): boolean {
  return getRootTokenId(token_id) !== token_id;
}

/** The rules above admit only tokens with a role. */
function requireTokenPrincipal(principal: Principal): Extract<Principal, { kind: "token" }> {
  if (principal.kind === "token") return principal;
  throw new Refusal(403, "DROVER-API-011", "This needs a user's token.");
}

function buildToken(kind: Token["kind"], label: string, created_by: string, now: Date) {
  return { kind, label, created_by, created_at: now.toISOString(), revoked_at: null, used_at: null };
}
