import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import type { DrivenRunner } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const never = new AbortController().signal;
const hashBytes = (text: string) => createHash("sha256").update(text).digest("hex");

/** What every store must do about the files of runs. */
export function storeFileContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the file contract`, () => {
    const { store, driver, now } = eachWithStore(open);

    const put = (text: string, announced: { sha256?: string; size?: number } = {}) =>
      store.blobs.put(
        Readable.from([Buffer.from(text)]),
        { sha256: hashBytes(text), size: Buffer.byteLength(text), ...announced },
        never,
      );
    const add = async (
      runner: DrivenRunner,
      run_id: string,
      attempt: number,
      text: string,
      changes: { only_check?: true } = {},
    ) => {
      const facts = { sha256: hashBytes(text), size: Buffer.byteLength(text), ...changes };
      return (await store.apply([{ op: "add_upload", run_id, attempt, runner, ...facts }]))[0];
    };
    const file = (path: string, text: string, changes: { size?: number } = {}) =>
      ({
        type: "file",
        path,
        size: Buffer.byteLength(text),
        sha256: hashBytes(text),
        media_type: "text/plain",
        ...changes,
      }) as const;
    const paths = async (run_id: string) => (await store.read.files(run_id)).map(({ path }) => path);

    it("stores contents under their hash, completely or not at all", async () => {
      expect(await put("hello")).toBe("stored");
      expect(await put("hello")).toBe("stored");
      expect(await put("")).toBe("stored");
      expect(await put("short", { size: 6 })).toBe("mismatch");
      expect(await put("longer", { size: 5 })).toBe("mismatch");
      expect(await put("other", { sha256: hashBytes("hello!") })).toBe("mismatch");
      expect(await put("named", { sha256: "../../etc/passwd" })).toBe("mismatch");
      const blob = await store.blobs.open(hashBytes("hello"));
      expect(blob?.size).toBe(5);
      expect((await buffer(blob!.stream)).toString()).toBe("hello");
      for (const text of ["short", "longer", "other", "hello!", "named"])
        expect(await store.blobs.open(hashBytes(text))).toBeNull();
      expect(await store.blobs.open("../../drover.db")).toBeNull();
    });

    it("creates files only for events whose bytes this attempt has uploaded", async () => {
      const run = await driver.submit();
      const other = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner, 2);
      await put("secret");
      await add(runner, other, 1, "secret");
      await add(runner, run, 1, "mine");
      expect(await add(runner, run, 1, "only looked at", { only_check: true })).toMatchObject({ ok: true });
      await driver.append(
        runner,
        run,
        1,
        1,
        file("a/b.txt", "mine"),
        file("stolen.txt", "secret"),
        file("checked.txt", "only looked at"),
        file("size.txt", "mine", { size: 3 }),
        file("../out", "mine"),
      );
      expect(await store.read.files(run)).toEqual([
        { path: "a/b.txt", size: 4, sha256: hashBytes("mine"), media_type: "text/plain" },
      ]);
      await driver.finish(runner, run, 1, {
        events: [{ n: 6, at: now().toISOString(), event: file("z", "mine") }],
        last_n: 6,
      });
      expect(await paths(run)).toEqual(["a/b.txt", "z"]);
      expect(await store.read.file(run, "z")).toMatchObject({ sha256: hashBytes("mine") });
      expect(await store.read.file(run, "stolen.txt")).toBeNull();
      expect(await store.read.file(other, "z")).toBeNull();
    });

    it("shows the last attempt's files, and accepts none from an attempt that is over", async () => {
      const run = await driver.submit();
      const a = await driver.register("a");
      await driver.claim(a, 1);
      expect(await add(a, run, 1, "first")).toMatchObject({ ok: true });
      await driver.append(a, run, 1, 1, file("first", "first"));
      expect(await paths(run)).toEqual(["first"]);
      await driver.finish(a, run, 1, { give_back: "at_no_cost" });
      expect(await paths(run)).toEqual(["first"]);
      const b = await driver.register("b");
      await driver.claim(b, 1);
      expect(await paths(run)).toEqual([]);
      const fenced = { ok: false, conflict: "fenced" };
      expect(await add(a, run, 1, "late")).toEqual(fenced);
      expect(await add(a, run, 2, "late")).toEqual(fenced);
      expect(await add({ ...b, epoch: b.epoch - 1 }, run, 2, "late")).toEqual(fenced);
      expect(await add(b, run, 2, "late", { only_check: true })).toMatchObject({ ok: true });
      expect(await add(b, run, 2, "kept")).toMatchObject({ ok: true });
      await driver.append(b, run, 2, 1, file("kept", "kept"), file("first", "first"));
      await driver.finish(b, run, 2);
      expect(await paths(run)).toEqual(["kept"]);
      // A repeated upload is accepted; a new one comes too late.
      expect(await add(b, run, 2, "kept")).toMatchObject({ ok: true });
      expect(await add(b, run, 2, "more")).toEqual(fenced);
      expect(await add(b, "nobody", 1, "x")).toEqual({ ok: false, conflict: "not_found" });
    });

    it("keeps the last of two files with one path", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      await add(runner, run, 1, "old");
      await add(runner, run, 1, "newer");
      await driver.append(runner, run, 1, 1, file("x", "old"), file("x", "newer"));
      expect(await store.read.files(run)).toMatchObject([{ path: "x", size: 5 }]);
    });
  });
}
