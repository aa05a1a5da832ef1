import { describe, expect, it } from "vitest";
import type { EachWithStore } from "./each-with-store.ts";

/** Tokens, and what is exchanged for them. */
export function describeTokens({ store, now }: EachWithStore): void {
  describe("tokens", () => {
    const token = {
      token_id: "t1",
      kind: "access",
      role: "user",
      subject: "ann",
      label: null,
      created_by: "root",
      created_at: "2026-01-01T00:00:00.000Z",
      expires_at: null,
      revoked_at: null,
      used_at: null,
    } as const;

    it("stores them by hash, and keeps the first time they were revoked", async () => {
      expect(await store.apply([{ op: "put_token", token, hash: "h1" }])).toEqual([{ ok: true, op: "put_token" }]);
      expect(await store.apply([{ op: "put_token", token: { ...token, token_id: "t2" }, hash: "h1" }])).toEqual([
        { ok: false, conflict: "exists" },
      ]);
      expect(await store.apply([{ op: "put_token", token, hash: "h2" }])).toEqual([{ ok: false, conflict: "exists" }]);
      expect(await store.read.token("h1")).toEqual(token);
      expect(await store.read.token("h2")).toBeNull();
      for (const at of ["2026-02-01", "2026-03-01"]) await store.apply([{ op: "revoke_token", token_id: "t1", at }]);
      expect(await store.read.tokens({ limit: 5 })).toEqual([{ ...token, revoked_at: "2026-02-01" }]);
      expect(await store.apply([{ op: "revoke_token", token_id: "t9", at: "x" }])).toEqual([
        { ok: false, conflict: "not_found" },
      ]);
    });

    it("finds a hash by its prefix, even of a revoked token, and no other hash", async () => {
      const [one, other] = ["ab12", "ab13"].map((beginning) => beginning.padEnd(64, "f"));
      await store.apply([{ op: "put_token", token, hash: one! }]);
      await store.apply([{ op: "put_token", token: { ...token, token_id: "t2" }, hash: other! }]);
      await store.apply([{ op: "revoke_token", token_id: "t2", at: "2026-02-01" }]);
      expect(await store.read.token_hash("ab12")).toBe(one);
      expect(await store.read.token_hash("ab13ffff")).toBe(other);
      expect(await store.read.token_hash("ab13ffff0")).toBeNull();
      for (const none of ["ab11", "ab14", "b", "fffffff"]) expect(await store.read.token_hash(none)).toBeNull();
    });

    it("revokes a token at once that was to end later", async () => {
      await store.apply([{ op: "put_token", token, hash: "h1" }]);
      for (const at of ["2026-03-01", "2026-02-01"]) await store.apply([{ op: "revoke_token", token_id: "t1", at }]);
      expect((await store.read.token("h1"))?.revoked_at).toBe("2026-02-01");
    });

    it("replaces a token with another; the old one ends a while later, but never later than before", async () => {
      const old = { ...token, label: "laptop", expires_at: "2026-09-01" };
      await store.apply([{ op: "put_token", token: old, hash: "h1" }]);
      const rotate = async (token_id: string, at: string, ends_at: string, made = token_id) => {
        const newToken = { ...token, token_id: `${made} next`, role: "admin", subject: "eve", label: null } as const;
        const next = { token: newToken, token_hash: `hash of ${made} next` };
        return (await store.apply([{ op: "rotate_token", token_id, at, ends_at, ...next }]))[0];
      };
      expect(await rotate("t1", "2026-02-01", "2026-02-03")).toEqual({
        ok: true,
        op: "rotate_token",
        ends_at: "2026-02-03",
      });
      expect(await store.read.token("hash of t1 next")).toEqual({ ...token, token_id: "t1 next", label: "laptop" });
      expect(await store.read.token("h1")).toEqual({ ...old, revoked_at: "2026-02-03" });
      // Recognized by its id: neither is the new token stored, nor does the old one's end change.
      expect(await rotate("t1", "2026-02-01", "2026-02-02")).toEqual({ ok: false, conflict: "exists" });
      expect((await store.read.token("h1"))?.revoked_at).toBe("2026-02-03");
      expect(await rotate("t1", "2026-02-01", "2026-02-09", "again")).toMatchObject({ ends_at: "2026-02-03" });
      expect(await rotate("t1", "2026-02-03", "2026-02-09", "late")).toEqual({ ok: false, conflict: "revoked" });
      expect(await store.read.token("hash of late next")).toBeNull();
    });

    it("does not replace a token that has ended, does not exist or is single-use", async () => {
      const expiring = { ...token, expires_at: "2026-06-01" };
      const enrolment = { ...token, token_id: "e", kind: "enrolment", role: "runner" } as const;
      await store.apply([
        { op: "put_token", token: expiring, hash: "h1" },
        { op: "put_token", token: enrolment, hash: "e" },
      ]);
      const rotate = async (token_id: string) => {
        const next = { token: { ...token, token_id: "n" }, token_hash: "hash of n" };
        const times = { at: "2026-06-01", ends_at: "2026-07-01" };
        return (await store.apply([{ op: "rotate_token", token_id, ...times, ...next }]))[0];
      };
      expect(await rotate("t1")).toEqual({ ok: false, conflict: "expired" });
      expect(await rotate("e")).toEqual({ ok: false, conflict: "not_found" });
      expect(await rotate("t9")).toEqual({ ok: false, conflict: "not_found" });
      expect(await store.read.token("hash of n")).toBeNull();
      expect(await store.read.token("h1")).toEqual(expiring);
    });

    it("revokes all current tokens of a subject with the given roles", async () => {
      const of = (token_id: string, changes: object = {}) =>
        ({ op: "put_token", token: { ...token, token_id, ...changes }, hash: `hash of ${token_id}` }) as const;
      await store.apply([
        of("a"),
        of("b", { role: "viewer" }),
        of("c", { role: "runner", kind: "enrolment" }),
        of("d", { subject: "bob" }),
        of("e", { revoked_at: "2026-01-01T00:00:00.000Z" }),
        of("f", { expires_at: "2025-12-31T00:00:00.000Z" }),
        of("g", { revoked_at: "2026-01-09T00:00:00.000Z" }),
      ]);
      // The store's clock decides, and it stands at the first of January.
      const ends = now().toISOString();
      const at = "2026-01-05T00:00:00.000Z";
      expect(await store.apply([{ op: "revoke_subject", subject: "ann", roles: ["user", "viewer"], at }])).toEqual([
        { ok: true, op: "revoke_subject", token_ids: ["a", "b", "g"] },
      ]);
      const endedTokens = (await store.read.tokens({ limit: 9 })).filter(({ revoked_at }) => revoked_at === ends);
      expect(endedTokens.map(({ token_id }) => token_id).sort()).toEqual(["a", "b", "e", "g"]);
      const currentTokens = { subject: "ann", roles: ["admin", "user", "viewer", "runner"] } as const;
      expect(await store.apply([{ op: "revoke_subject", ...currentTokens, at }])).toEqual([
        { ok: true, op: "revoke_subject", token_ids: ["c"] },
      ]);
      expect(await store.read.token("hash of d")).toMatchObject({ revoked_at: null });
    });

    it("derives no token from one that was revoked with its subject, however slow the caller's clock is", async () => {
      const enrolment = { ...token, token_id: "e", kind: "enrolment", role: "runner" } as const;
      await store.apply([
        { op: "put_token", token, hash: "h1" },
        { op: "put_token", token: enrolment, hash: "e" },
      ]);
      const lateClock = { at: "2025-12-24T00:00:00.000Z", ends_at: "2025-12-25T00:00:00.000Z" };
      const createToken = (token_id: string) => ({ token: { ...token, token_id }, token_hash: `hash of ${token_id}` });
      const fast = "2026-02-01T00:00:00.000Z";
      const [rotated, revoked, again, exchanged] = await store.apply([
        { op: "rotate_token", token_id: "t1", ...lateClock, ends_at: fast, ...createToken("n1") },
        { op: "revoke_subject", subject: "ann", roles: ["user", "runner"], at: fast },
        { op: "rotate_token", token_id: "n1", ...lateClock, ...createToken("n2") },
        { op: "use_enrolment", hash: "e", at: lateClock.at, ...createToken("n3") },
      ]);
      expect(rotated.ok).toBe(true);
      expect(revoked).toMatchObject({ token_ids: ["e", "n1", "t1"] });
      for (const refused of [again, exchanged]) expect(refused).toEqual({ ok: false, conflict: "revoked" });
      expect(await store.read.tokens({ limit: 9 })).toHaveLength(3);
    });

    it("exchanges an enrolment once, for a token with its role and subject", async () => {
      const enrolment = {
        ...token,
        token_id: "e",
        kind: "enrolment",
        role: "runner",
        subject: "farm",
        expires_at: "2026-06-01",
      } as const;
      await store.apply([
        { op: "put_token", token: enrolment, hash: "e" },
        { op: "put_token", token, hash: "h1" },
      ]);
      const use = (hash: string, at: string, token_id = "n") =>
        store.apply([
          {
            op: "use_enrolment",
            hash,
            at,
            token: { ...token, token_id, role: "admin", subject: "eve" },
            token_hash: `hash of ${token_id}`,
          },
        ]);
      expect(await use("h1", "2026-01-02")).toEqual([{ ok: false, conflict: "not_found" }]);
      expect(await use("e", "2026-06-01")).toEqual([{ ok: false, conflict: "expired" }]);
      expect(await use("e", "2026-01-02")).toEqual([{ ok: true, op: "use_enrolment", subject: "farm" }]);
      expect(await store.read.token("hash of n")).toMatchObject({ role: "runner", subject: "farm", kind: "access" });
      expect(await use("e", "2026-01-02", "m")).toEqual([{ ok: false, conflict: "used" }]);
      expect(await store.read.token("hash of m")).toBeNull();
    });
  });
}
