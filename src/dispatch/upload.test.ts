import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { openHost, type Host } from "../../test/fixtures/dispatch/host.ts";
import type { DispatcherOptions } from "./dispatcher.ts";

const hosts: Host[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) {
    await host.close();
    await host.dispose();
  }
});

async function openHostWithRun(options: Partial<DispatcherOptions>) {
  const host = await openHost(options);
  hosts.push(host);
  const { runner_id, epoch } = await host.register();
  const run_id = await host.submit();
  const signal = AbortSignal.timeout(60_000);
  const { claims } = await host.port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, signal);
  const bytes = Buffer.from("hello");
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  let readCount = 0;
  const content = async function* () {
    readCount += 1;
    yield bytes;
  };
  const uploadRequest = { runner_id, epoch, run_id, attempt: claims[0]!.attempt, sha256, size: bytes.length };
  return {
    host,
    countReads: () => readCount,
    upload: (changes: object = {}) => host.port.upload({ ...uploadRequest, ...changes }, content(), signal),
    isStored: () => existsSync(join(host.directory, "files", sha256.slice(0, 2), sha256)),
  };
}

it("rejects a file that is too large, or any file while the disk is low, before reading it", async () => {
  let disk: string | null = null;
  const { upload, countReads } = await openHostWithRun({ maxFileBytes: 4, getLowDiskReason: () => disk });
  await expect(upload()).rejects.toMatchObject({
    conflict: "refused",
    message: expect.stringContaining("accepts at most 4"),
  });
  disk = "no room";
  await expect(upload({ size: 4 })).rejects.toMatchObject({
    conflict: "away",
    message: expect.stringContaining("no room"),
  });
  expect(countReads()).toBe(0);
});

it("rejects a runner that does not have the run before reading the file, and records the rejection", async () => {
  const { host, upload, countReads, isStored } = await openHostWithRun({});
  expect(await upload({ attempt: 7 })).toEqual({ upload: "fenced" });
  expect([countReads(), isStored()]).toEqual([0, false]);
  const fenced = host.store.connection.sql("select body from audit_rows where kind = 'fenced'").all();
  expect(fenced.map(({ body }) => JSON.parse(String(body)))).toMatchObject([{ refused: "add_upload" }]);
  expect(await host.verify()).toMatchObject({ ok: true });
  expect(await upload()).toEqual({ upload: "stored" });
});
