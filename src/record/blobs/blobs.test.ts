import { expect, it } from "vitest";
import { hashBytes } from "../../../test/fixtures/record/files.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";

const { newDirectory, open } = scratchStores();

it("closes the store only after pending contents are written", async () => {
  const store = await open(newDirectory());
  const bytes = Buffer.from("slow");
  let send = (): void => undefined;
  const sent = new Promise<void>((resolve) => (send = resolve));
  const content = async function* () {
    await sent;
    yield bytes;
  };
  const ended: string[] = [];
  const announced = { sha256: hashBytes(bytes), size: bytes.length };
  const put = store.blobs
    .put(content(), announced, new AbortController().signal)
    .then((outcome) => ended.push(outcome));
  const closed = store.close().then(() => ended.push("closed"));
  // Long enough for a store to close that does not wait.
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  send();
  await Promise.all([put, closed]);
  expect(ended).toEqual(["stored", "closed"]);
});
