import type { Agent } from "../../model/agent.ts";
import type { Demands } from "../../model/run.ts";
import type { Token } from "../../model/token.ts";
import { selectToken, toToken } from "../ops/tokens.ts";
import { all, first, type Work } from "../query.ts";
import { toColumn } from "../text.ts";

export { readFile, readFiles } from "./files.ts";
export { readQuestion, readQuestions, readUsage } from "./questions.ts";
export { readPoller, readRunnersWithWork } from "./pollers.ts";
export { readAgentNames, readAgentPage, readAgents } from "./agents.ts";
export { readRunner, readRunnerPage, readRunners } from "./runners.ts";
export { readDueSchedules, readSchedule, readSchedules, readSlots } from "./schedules.ts";
export { readDeletedSessions, readSession, readSessions, readForks, readVersions } from "./sessions.ts";
export { readSessionState } from "./session-state.ts";
export {
  readDeliveries,
  readDelivery,
  readHook,
  readHooks,
  readPendingChains,
  readTriggersDue,
  readWebhook,
  readWebhooks,
} from "./triggers.ts";
export { readWaitReasons } from "./wait-reasons.ts";

// 'g' sorts after every hexadecimal digit, so this is one range of the index on hashes.
const selectHash = `select hash from tokens where hash >= ?1 and hash < ?1 || 'g' order by hash limit 1`;
const selectTokens = `select * from tokens where (token_id < ?1 or ?1 is null) order by token_id desc limit ?2`;
const selectAgent = `
  select agent_revs.body, runs.timeout_seconds, demands.body as demands
  from runs join agent_revs using (agent_rev_id) join demands using (demand_id) where run_id = ?`;

export function* readToken(hash: string): Work<Token | null> {
  const [row] = yield first(selectToken, toColumn(hash));
  return row === undefined ? null : toToken(row);
}

export function* readTokenHash(prefix: string): Work<string | null> {
  const [row] = yield first(selectHash, toColumn(prefix));
  return row === undefined ? null : String(row["hash"]);
}

export function* readTokens(page: { before?: string; limit: number }): Work<Token[]> {
  return (yield all(selectTokens, toColumn(page.before ?? null), page.limit)).map(toToken);
}

export function* readSubmittedAgent(
  run_id: string,
): Work<{ agent: Agent; timeout_seconds: number | null; demands: Demands } | null> {
  const [row] = yield first(selectAgent, toColumn(run_id));
  if (row === undefined) return null;
  return {
    // create_run wrote both values from the model's types.
    agent: JSON.parse(String(row["body"])) as Agent,
    demands: JSON.parse(String(row["demands"])) as Demands,
    timeout_seconds: row["timeout_seconds"] === null ? null : Number(row["timeout_seconds"]),
  };
}
