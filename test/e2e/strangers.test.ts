// A small version of H5 of docs/torture.md: each kind of stranger once.
import { expect, test } from "vitest";
import { strangerKinds } from "../../torture/stranger-script.ts";
import { strangers } from "../../torture/strangers.ts";
import { createTortureTools } from "./torture-tools.ts";

test("H5: a program on a dead coordinator's port gets no secret, hands out no run, and is abandoned for the real coordinator", async () => {
  const rounds = strangerKinds.length;
  const { broken, seen } = await strangers({ rounds }, await createTortureTools("sqlite"));
  expect(broken).toEqual([]);
  expect(seen).toMatchObject({ strangers: rounds, returned: rounds });
});
