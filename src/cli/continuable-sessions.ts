import type { Project } from "../local.ts";
import { type Agent, getSessionTimeoutSeconds } from "../model/agent.ts";
import { isProcedural, type Session } from "../model/session.ts";
import { hasEnded } from "../model/states.ts";
import type { RunRow } from "../model/store.ts";
import type { ApiClient } from "../wire/client.ts";
import type { Output } from "../wire/contracts.ts";
import type { CommandInput } from "./options.ts";

type Runner = Output<"GET /runners">["items"][number];

/** A session, its last run, and whether it can be continued. */
export interface ContinuableSession extends Session {
  last_run: Pick<RunRow, "run_id" | "status" | "reason"> | null;
  /** Without a coordinator, the capabilities of the executor are unknown, so the executor may still refuse. */
  can_resume: boolean;
  can_fork: boolean;
  /** Why the session cannot be continued, or what a run that continues it would wait for. null if neither. */
  obstacle: string | null;
}

export interface SessionPage {
  items: readonly Session[];
  next_cursor: string | null;
  lastRuns: ReadonlyMap<string, ContinuableSession["last_run"]>;
  /** null without a coordinator, because each command then has its own runner. */
  runners: readonly Runner[] | null;
  /** null without a coordinator, because they are not known yet. */
  agents: readonly Agent[] | null;
}

/** How many requests for last runs are open at a time. */
const concurrency = 8;

export async function readSessionPage(
  client: ApiClient,
  hasCoordinator: boolean,
  query: Parameters<ApiClient["sessions"]["list"]>[0],
): Promise<SessionPage> {
  const { items, next_cursor } = await client.sessions.list(query);
  const [agents, runners] = hasCoordinator
    ? await Promise.all([client.agents.list(), client.runners.list()])
    : [null, null];
  const lastRuns = new Map<string, ContinuableSession["last_run"]>();
  for (let start = 0; start < items.length; start += concurrency) {
    const part = items.slice(start, start + concurrency);
    await Promise.all(
      part.map(async ({ session_id }) => lastRuns.set(session_id, await findLastRun(client, session_id))),
    );
  }
  return { items, next_cursor, lastRuns, runners: runners?.items ?? null, agents: agents?.items ?? null };
}

async function findLastRun({ runs }: ApiClient, session_id: string): Promise<ContinuableSession["last_run"]> {
  const [run] = (await runs.list({ session_id, limit: 1 })).items;
  return run ? { run_id: run.run_id, status: run.status, reason: run.reason } : null;
}

/** Lists the agents that `drover sessions resume` would find without a coordinator. Returns null for the record of a fleet. */
export async function listAgentsHere(input: CommandInput, project: Project): Promise<readonly Agent[] | null> {
  if (input.env["DATABASE_URL"]) return null;
  const { listLocalAgents } = await import("./local-agents.ts");
  return listLocalAgents({ ...input, options: { ...input.options, quiet: true } }, project);
}

/** Adds to each session whether it can be continued, and if not, why. */
export function assessSessions({ items, lastRuns, runners, agents }: SessionPage, now: Date): ContinuableSession[] {
  return items.map((session) => {
    const last_run = lastRuns.get(session.session_id) ?? null;
    const agent = agents?.find(({ name }) => name === session.agent_name) ?? null;
    const isAgentUnknown = agents !== null && agent === null;
    return { ...session, last_run, ...assess({ session, last_run, agent, isAgentUnknown, runners, now }) };
  });
}

interface Facts {
  session: Session;
  last_run: ContinuableSession["last_run"];
  agent: Agent | null;
  /** Whether the agents are known and do not include the session's agent. */
  isAgentUnknown: boolean;
  runners: SessionPage["runners"];
  now: Date;
}

type Assessment = Pick<ContinuableSession, "can_resume" | "can_fork" | "obstacle">;

function assess({ session, last_run, agent, isAgentUnknown, runners, now }: Facts): Assessment {
  const cannotContinue = (obstacle: string): Assessment => ({ can_resume: false, can_fork: false, obstacle });
  const isActive = last_run !== null && !hasEnded(last_run.status);
  if (isProcedural(session)) return cannotContinue("procedural: a command has no conversation");
  if (session.executor_session_id === null)
    return cannotContinue(
      isActive ? "its first run has not started a conversation yet" : "none of its runs started a conversation",
    );
  if (isAgentUnknown) return cannotContinue(`the agent ${session.agent_name} does not exist`);
  const timeoutSeconds = agent ? getSessionTimeoutSeconds(agent) : null;
  if (timeoutSeconds !== null && now.getTime() - Date.parse(session.last_used_at) > timeoutSeconds * 1000)
    return cannotContinue(`expired: not used for ${timeoutSeconds} s (session.timeout)`);
  const hosts = runners?.filter((runner) => canHost(runner, session)) ?? [];
  const host = hosts.find(({ status }) => status === "online") ?? hosts[0];
  const capabilities = host?.executor.can;
  const assessment = { can_resume: capabilities?.resume !== false, can_fork: capabilities?.fork !== false };
  if (!assessment.can_resume && !assessment.can_fork) return cannotContinue("its executor cannot continue sessions");
  if (runners !== null && host?.status !== "online")
    return { ...assessment, obstacle: `waits for a runner: ${describeHost(session)}` };
  return { ...assessment, obstacle: isActive ? `waits for its ${last_run.status} run` : null };
}

/** Whether this runner has the session, as the coordinator decides when it assigns a run. */
function canHost(runner: Runner, { portable, executor_profile, place_id, runner_id }: Session): boolean {
  if (runner.executor_profile !== executor_profile) return false;
  if (portable) return true;
  return place_id === null ? runner.runner_id === runner_id : runner.place_id === place_id;
}

function describeHost({ portable, executor_profile, hostname, runner_id }: Session): string {
  if (portable) return `any with the profile ${executor_profile}`;
  return hostname === null ? (runner_id ?? "none yet") : `profile ${executor_profile} on ${hostname}`;
}

/** "resume, fork", "resume" or "no", with the obstacle if there is one. */
export function describeContinuation({ can_resume, can_fork, obstacle }: Assessment): string {
  const ways = [...(can_resume ? ["resume"] : []), ...(can_fork ? ["fork"] : [])].join(", ") || "no";
  return obstacle === null ? ways : `${ways}: ${obstacle}`;
}
