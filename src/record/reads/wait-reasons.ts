import type { RunnerRow, WaitReason } from "../../model/dispatch-ops.ts";
import type { Demands } from "../../model/run.ts";
import { statusIn } from "../moves/statuses.ts";
import { findSessionHost, formatPinnedSessionMessage, preferMs } from "../ops/place-run.ts";
import { findUnmetDemands } from "../matching.ts";
import { first, type Row, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";
import { readRunners } from "./runners.ts";

const selectPending = `
  select runs.run_no, runs.status, runs.parked_why, runs.parked_until, runs.waiting_for, runs.mode, runs.blocked_by, runs.prefer_until, runs.agent_name, runs.directory, demands.body, demands.cap, (
    select count(*) from runs busy where busy.agent_name = runs.agent_name and busy.agent_rev_id is not null
      and ${statusIn("busy", "busy.status")}
      and (demands.cap_runner is null or busy.runner_id = demands.cap_runner)) as busy,
    (select waits_for from schedule_slots where schedule_slots.run_id = runs.run_id) as waits_for
  from runs join demands using (demand_id) where run_id = ?`;

/** The first reason in the response to /why for a parked run. */
export const toParkedReason = (reason: unknown): WaitReason["demand"] =>
  reason === "approval" || reason === "budget" ? reason : "usage_limit";

/**
 * Returns everything that keeps the run from being claimed. If no runner meets one of its demands, returns only that
 * demand.
 */
export function* readWaitReasons(
  run_id: string,
  shortages: ReadonlyMap<string, string> = new Map(),
): Work<WaitReason[] | null> {
  const [row] = yield first(selectPending, toColumn(run_id));
  if (row === undefined) return null;
  if (row["status"] === "waiting") return [yield* describeOpenQuestion(Number(row["run_no"]))];
  if (row["status"] === "parked") return [yield* describeParked(row)];
  if (row["status"] !== "pending") return [];
  const runners = yield* readRunners();
  return findPendingReasons({ ...row, host: yield* findSessionHost(Number(row["run_no"])) }, runners, shortages);
}

/** `row` has the columns of selectPending. `host` is the session's host if the run can only continue there. */
export function findPendingReasons(
  row: Row & { host: string | null },
  runners: readonly RunnerRow[],
  shortages: ReadonlyMap<string, string> = new Map(),
): WaitReason[] {
  // create_run wrote this value from a run's demands.
  const demands = JSON.parse(String(row["body"])) as Demands;
  const reasons = findRunnerReasons(demands, runners, fromColumn(String(row["agent_name"])), shortages);
  if (row["prefer_until"] !== null) reasons.unshift(describePreference(demands));
  if (row.host !== null && reasons.length > 0)
    reasons.push({ demand: "session", detail: formatPinnedSessionMessage(row.host) });
  if (row["blocked_by"] === "session") {
    const which = row["mode"] === "fork" ? "the session it was forked from" : "its session";
    reasons.push({ demand: "session", detail: `An earlier run of ${which} has not ended.` });
  }
  if (row["blocked_by"] === "schedule") {
    const previousRun = textOrNull(row["waits_for"]);
    reasons.push({
      demand: "schedule",
      detail: `The previous run of its schedule has not ended${previousRun ? `: ${previousRun}` : ""}.`,
    });
  }
  if (row["blocked_by"] === "directory")
    reasons.push({ demand: "directory", detail: describeBusyDirectory(String(row["directory"])) });
  const { cap, busy } = row;
  if (cap !== null && Number(busy) >= Number(cap)) {
    reasons.push({
      demand: "max_concurrent",
      detail: `${Number(busy)} runs of its agent are already running; max_concurrent is ${Number(cap)}.`,
    });
  }
  return reasons;
}

const selectOpen = `
  select tool, asked_at, expires_at from questions where run_no = ? and decision is null order by question_no limit 1`;

function* describeParked(row: Row): Work<WaitReason> {
  const reason = row["parked_why"];
  if (reason === "approval") return yield* describeOpenQuestion(Number(row["run_no"]));
  const until = textOrNull(row["parked_until"]);
  const when = until === null ? "It continues when somebody resumes it." : `It continues at ${until}.`;
  const message = textOrNull(row["waiting_for"]) ?? "It is parked.";
  return { demand: toParkedReason(reason), detail: `${message} ${when}` };
}

function* describeOpenQuestion(run_no: number): Work<WaitReason> {
  const [open] = yield first(selectOpen, run_no);
  if (open === undefined)
    return { demand: "approval", detail: "It is waiting for a person. It continues when somebody resumes it." };
  const expires = new Date(Number(open["expires_at"])).toISOString();
  return {
    demand: "approval",
    detail: `It asked about ${fromColumn(String(open["tool"]))} at ${String(open["asked_at"])}, and nobody has answered. It fails at ${expires}.`,
  };
}

function describePreference({ runner_id, place_id, hostname }: Demands): WaitReason {
  const where =
    place_id === undefined ? `the runner ${runner_id}` : `the runners of its state directory (place_id ${place_id})`;
  return {
    demand: "session",
    detail: `Its session is on ${hostname}: only ${where} may take it for ${preferMs / 1000} s, then any runner that meets its demands.`,
  };
}

const demandOrder = [
  "runner_id",
  "hostname",
  "place_id",
  "project_dir",
  "executor_profile",
  "executor_type",
  "tags",
] as const;

/** ../ops/enter-directory.ts wrote `directory`. */
function describeBusyDirectory(directory: string): string {
  const [hostname, path] = (JSON.parse(directory) as string[]).map(fromColumn);
  return `Another run is working in ${path} on ${hostname}.`;
}

function findRunnerReasons(
  demands: Demands,
  runners: readonly RunnerRow[],
  agent_name: string,
  shortages: ReadonlyMap<string, string>,
): WaitReason[] {
  let candidates = runners.filter((runner) => runner.status !== "lost");
  if (demands.runner_id !== undefined && !candidates.some((runner) => runner.runner_id === demands.runner_id)) {
    return [{ demand: "runner_id", detail: `Runner ${demands.runner_id} is offline.` }];
  }
  if (candidates.length === 0) return [{ demand: "agent", detail: "No runner is online." }];
  for (const demand of demandOrder) {
    const matching = candidates.filter((runner) => !findUnmetDemands(demands, toFacts(runner)).includes(demand));
    if (matching.length === 0) return [{ demand, detail: describeUnmet(demand, demands, candidates) }];
    candidates = matching;
  }
  const accepting = candidates.filter(({ only_agent }) => only_agent === null || only_agent === agent_name);
  if (accepting.length === 0) {
    const names = [...new Set(candidates.map(({ only_agent }) => only_agent))].join(", ");
    return [{ demand: "agent", detail: `Every runner that could take it is restricted to other agents: ${names}.` }];
  }
  candidates = accepting;
  const online = candidates.filter((runner) => runner.status === "online");
  const names = candidates.map((runner) => runner.runner_id).join(", ");
  if (online.length === 0)
    return [{ demand: "slots", detail: `Every runner that could take it is draining: ${names}.` }];
  const free = online.filter((runner) => runner.running < runner.slots);
  if (free.length === 0)
    return [{ demand: "slots", detail: `All slots are busy on every runner that could take it: ${names}.` }];
  const reasons = free.flatMap(({ runner_id }) => {
    const shortage = shortages.get(runner_id);
    return shortage === undefined
      ? []
      : [{ demand: "descriptors" as const, detail: `Runner ${runner_id}: ${shortage}.` }];
  });
  return reasons.length === free.length ? reasons : [];
}

function describeUnmet(demand: keyof Demands, demands: Demands, runners: readonly RunnerRow[]): string {
  if (demand !== "tags") {
    const offered = [
      ...new Set(runners.map((runner) => (demand === "executor_type" ? runner.executor.type : runner[demand]))),
    ];
    return `No online runner has ${demand} ${String(demands[demand])}; available: ${offered.join(", ")}.`;
  }
  const demandedTags = demands.tags ?? [];
  if (demandedTags.length === 0)
    return "Every online runner takes only runs with matching tags, and this run demands none.";
  const offeredTags = new Set(runners.flatMap((runner) => runner.tags));
  const missing = demandedTags.filter((tag) => !offeredTags.has(tag));
  if (missing.length === 1) return `No online runner has the tag ${missing[0]}.`;
  if (missing.length > 1) return `No online runner has any of these tags: ${missing.join(", ")}.`;
  return `No single online runner has all of these tags: ${demandedTags.join(", ")}.`;
}

function toFacts(runner: RunnerRow) {
  return { ...runner, executor_type: runner.executor.type };
}
