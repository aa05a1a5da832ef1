import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dispatchModelContract } from "../../test/contract/store-dispatch-model.ts";
import type { OpenedForDispatch } from "../../test/contract/each-with-store.ts";
import { storeDispatchContract } from "../../test/contract/store-dispatch.ts";
import { storeDirectoryContract } from "../../test/contract/store-directories.ts";
import { storeFileContract } from "../../test/contract/store-files.ts";
import { storePollContract } from "../../test/contract/store-polls.ts";
import { storeQuestionContract } from "../../test/contract/store-questions.ts";
import { storeSearchContract } from "../../test/contract/store-search.ts";
import { storeScheduleContract } from "../../test/contract/store-schedules.ts";
import { storeSessionContract } from "../../test/contract/store-sessions.ts";
import { storeSpendingContract } from "../../test/contract/store-spending.ts";
import { storeStatsContract } from "../../test/contract/store-stats.ts";
import { createManualClock } from "../../test/fixtures/dispatch/host.ts";
import { openStore } from "./open.ts";

async function open(): Promise<OpenedForDispatch> {
  const directory = mkdtempSync(join(tmpdir(), "drover-record-"));
  const { now, advance } = createManualClock();
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
}

storeDispatchContract("SQLite", open);
storeSessionContract("SQLite", open);
storeQuestionContract("SQLite", open);
storeSpendingContract("SQLite", open);
storeSearchContract("SQLite", open);
storeStatsContract("SQLite", open);
storeDirectoryContract("SQLite", open);
storeFileContract("SQLite", open);
storePollContract("SQLite", open);
storeScheduleContract("SQLite", open);
dispatchModelContract("SQLite", open, 40);
