import { describeUntrusted, findUntrusted } from "../cli/resolve-trust.ts";
import { withEmbedded } from "../embedded.ts";
import type { Project } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { Environment } from "../model/environment.ts";
import { statusSets } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import { createDrover, type Drover } from "./drover.ts";
import { waitForRun } from "./wait-for-run.ts";

interface EmbeddedSettings {
  project: Project;
  env: Environment;
  cwd: string;
  agentsDirectory: string | null;
}

/** Opens a state directory in this process, with a runner that takes the runs submitted here, until it is closed. */
export function openEmbedded({ project, env, cwd, agentsDirectory }: EmbeddedSettings): Promise<Drover> {
  const warn = (message: string): void => process.emitWarning(message, "DroverWarning");
  const scope = { profiles: true, agents: agentsDirectory === null };
  describeUntrusted(findUntrusted({ cwd, env, options: {} }, project, scope), env).forEach(warn);
  const runIds = new Set<string>();
  let resolveClosed!: () => void;
  const closed = new Promise<void>((resolve) => (resolveClosed = resolve));
  return new Promise((resolve, reject) => {
    const ended = withEmbedded(
      {
        project,
        env,
        cwd,
        agentsDirectory,
        target: {},
        requester: "connect",
        onRunCreated: (run_id) => void runIds.add(run_id),
        onNotice: warn,
        onDefect: (error, where) => warn(`${where}: ${error instanceof Error ? error.message : String(error)}`),
        onAgentFaults: (faults) => faults.forEach((fault) => warn(describeFault(fault))),
      },
      async (client) => {
        const closeAndWait = (): Promise<void> => {
          resolveClosed();
          return ended;
        };
        resolve(createDrover(client, closeAndWait));
        await closed;
        await stopUnfinished(client, runIds);
      },
    );
    // Once the promise is resolved, `close` reports a failure.
    ended.catch(reject);
  });
}

/** Stops the runs that would no longer have a runner, and waits until their ends are recorded. Parked runs stay parked. */
async function stopUnfinished(client: ApiClient, runIds: ReadonlySet<string>): Promise<void> {
  const stops: Promise<unknown>[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Awaited<ReturnType<ApiClient["runs"]["list"]>> = await client.runs.list({
      status: statusSets.open.filter((status) => status !== "parked"),
      limit: 1000,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const { run_id } of page.items)
      if (runIds.has(run_id)) stops.push(client.runs.stop(run_id).then(() => waitForRun(client, run_id, {})));
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  await Promise.all(stops);
}
