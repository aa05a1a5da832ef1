import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../../test/contract/store.ts";
import { openStore } from "./open.ts";

storeContract("SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-record-"));
  const open = () => openStore({ directory, now: () => new Date(), createIfMissing: true });
  const store = await open();
  return {
    store,
    reopen: open,
    async dispose() {
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
});
