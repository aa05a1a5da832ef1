import { expect, test } from "vitest";
import { create, ownDatabase } from "../../../test/fixtures/record/postgres-stores.ts";
import { sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";

const database = ownDatabase();

test("fails only the caller of a bad operation and stores the others of the same transaction", async () => {
  const store = await database.open();
  const bad = create(sampleRun({ run_id: sampleId(), status: "completed" }));
  const answers = await Promise.allSettled([store.apply([create()]), store.apply([bad]), store.apply([create()])]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});
