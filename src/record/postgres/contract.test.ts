import { dispatchModelContract } from "../../../test/contract/store-dispatch-model.ts";
import type { OpenedForDispatch } from "../../../test/contract/each-with-store.ts";
import { storeDispatchContract } from "../../../test/contract/store-dispatch.ts";
import { storeDirectoryContract } from "../../../test/contract/store-directories.ts";
import { storeFileContract } from "../../../test/contract/store-files.ts";
import { storePollContract } from "../../../test/contract/store-polls.ts";
import { storeQuestionContract } from "../../../test/contract/store-questions.ts";
import { storeSearchContract } from "../../../test/contract/store-search.ts";
import { storeScheduleContract } from "../../../test/contract/store-schedules.ts";
import { storeSessionContract } from "../../../test/contract/store-sessions.ts";
import { storeSpendingContract } from "../../../test/contract/store-spending.ts";
import { storeStatsContract } from "../../../test/contract/store-stats.ts";
import { storeContract } from "../../../test/contract/store.ts";
import { createManualClock } from "../../../test/fixtures/dispatch/host.ts";
import { emptyRecord } from "../../../test/postgres/empty-record.ts";
import { openPostgresStore } from "./open.ts";

const secret = Buffer.alloc(32, 7);

storeContract("PostgreSQL", async () => {
  const database = await emptyRecord(secret);
  const reopen = () => openPostgresStore({ url: database.url, secret });
  const store = await reopen();
  return {
    store,
    reopen,
    async dispose() {
      await store.close();
      await database.drop();
    },
  };
});

async function openForDispatch(): Promise<OpenedForDispatch> {
  const database = await emptyRecord(secret);
  const { now, advance } = createManualClock();
  const store = await openPostgresStore({ url: database.url, secret, now });
  return {
    store,
    now,
    advance,
    async dispose() {
      await store.close();
      await database.drop();
    },
  };
}

storeDispatchContract("PostgreSQL", openForDispatch);
storeSessionContract("PostgreSQL", openForDispatch);
storeQuestionContract("PostgreSQL", openForDispatch);
storeSpendingContract("PostgreSQL", openForDispatch);
storeSearchContract("PostgreSQL", openForDispatch);
storeStatsContract("PostgreSQL", openForDispatch);
storeDirectoryContract("PostgreSQL", openForDispatch);
storeFileContract("PostgreSQL", openForDispatch);
storePollContract("PostgreSQL", openForDispatch);
storeScheduleContract("PostgreSQL", openForDispatch);
// The rules are the same code as for SQLite, whose tests include more of them.
dispatchModelContract("PostgreSQL", openForDispatch, 12);
