import type { Engine } from "./engine.ts";
import { pruneInPages } from "./prune-in-pages.ts";
import { all, first, write, type Row, type Work } from "./query.ts";

const runsPerPage = 5000;
const revsPerPage = 500;

const deleteMatches = `delete from demand_matches where demand_id = ?`;
const selectNewest = `select run_no, run_id from runs order by run_no desc limit 1`;
const selectUsed = `
  select agent_rev_id, count(*) as runs, max(run_no) as last_no
  from (select run_no, agent_rev_id from runs where run_no > ? order by run_no limit ?) page group by agent_rev_id`;
const selectRevs = `select agent_rev_id from agent_revs where agent_rev_id > ? order by agent_rev_id limit ?`;
const selectRun = `select run_id from runs where run_no = ?`;
const selectUsedSince = `select distinct agent_rev_id from runs where run_no > ?`;
const deleteRev = `delete from agent_revs where agent_rev_id = ?`;

/** Removes demands without runs, because a new runner is compared with all demands. Keeps the first, which every record has. */
export function pruneDemands(engine: Engine): Promise<number> {
  return pruneInPages(
    engine,
    {
      table: "demands",
      key: "demand_id",
      from: 1,
      // Repeats the condition of the partial index word for word, so that the index is used.
      condition: `not exists (select 1 from runs where runs.demand_id = demands.demand_id and runs.demand_id <> 1)`,
      returning: "demand_id",
    },
    [],
    function* (rows) {
      for (const { demand_id = null } of rows) yield write(deleteMatches, demand_id);
    },
  );
}

/**
 * Removes agent revisions without runs. There is no index from revisions to runs, because every new run would pay for it.
 * Instead this scans all runs without a lock, and under the lock only the runs created since.
 */
export async function pruneAgentRevs(engine: Engine): Promise<number> {
  const [newest] = await engine.read(() => runQuery(first(selectNewest)));
  const usedRevs = await findUsedRevs(engine);
  let removedCount = 0;
  for (let after = 0; ;) {
    const revs = (await engine.read(() => runQuery(all(selectRevs, after, revsPerPage)))).map(toRevId);
    const unused = revs.filter((rev) => !usedRevs.has(rev));
    if (unused.length > 0) removedCount += await engine.write(() => deleteRevs(unused, newest));
    if (revs.length < revsPerPage) return removedCount;
    after = revs.at(-1) ?? after;
  }
}

async function findUsedRevs(engine: Engine): Promise<Set<number>> {
  const usedRevs = new Set<number>();
  for (let last = 0; ;) {
    const page = await engine.read(() => runQuery(all(selectUsed, last, runsPerPage)));
    for (const row of page) usedRevs.add(toRevId(row));
    if (page.reduce((runs, row) => runs + Number(row["runs"]), 0) < runsPerPage) return usedRevs;
    last = Math.max(...page.map((row) => Number(row["last_no"])));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Runs created since have higher numbers than `newest`, provided that run still exists: SQLite reuses the highest number. */
function* deleteRevs(unused: readonly number[], newest: Row | undefined): Work<number> {
  const run_no = Number(newest?.["run_no"] ?? 0);
  const [currentRow] = yield first(selectRun, run_no);
  if (currentRow?.["run_id"] !== newest?.["run_id"]) return 0;
  const usedSince = new Set((yield all(selectUsedSince, run_no)).map(toRevId));
  const stillUnused = unused.filter((rev) => !usedSince.has(rev));
  for (const rev of stillUnused) yield write(deleteRev, rev);
  return stillUnused.length;
}

function toRevId(row: Row): number {
  return Number(row["agent_rev_id"]);
}

function* runQuery(query: ReturnType<typeof all>): Work<Row[]> {
  return yield query;
}
