import { afterEach, expect, test } from "vitest";
import { type Host, openHost } from "../../test/fixtures/dispatch/host.ts";

let host: Host | null = null;
afterEach(async () => {
  await host?.close();
  await host?.dispose();
  host = null;
});

test("treats a repeated registration as one and keeps its epoch valid", async () => {
  host = await openHost();
  const first = await host.register({ registration_id: "r1" });
  expect(await host.register({ registration_id: "r1" })).toEqual(first);
  const poll = { runner_id: first.runner_id, epoch: first.epoch, claim_id: "c1", want: 1, ack_order: 0 };
  await host.submit();
  expect((await host.port.poll(poll, new AbortController().signal)).claims).toHaveLength(1);
});

test("gives a new registration of the same runner a new epoch", async () => {
  host = await openHost();
  const first = await host.register({ registration_id: "r1" });
  const second = await host.register({ registration_id: "r2" });
  expect(second.epoch).toBeGreaterThan(first.epoch);
  await expect(
    host.port.report({ ...first, held: [], as_of_claim: null, events: [], partials: [], finishes: [] }),
  ).rejects.toMatchObject({ conflict: "old_epoch" });
});
