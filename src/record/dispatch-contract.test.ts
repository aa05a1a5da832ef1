import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeDispatchContract } from "../../test/contract/store-dispatch.ts";
import { standingClock } from "../../test/fixtures/dispatch/host.ts";
import { openStore } from "./open.ts";

storeDispatchContract("SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-record-"));
  const { now, advance } = standingClock();
  const store = await openStore({ directory, now, createIfMissing: true });
  return {
    store,
    now,
    advance,
    async dispose() {
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
});
