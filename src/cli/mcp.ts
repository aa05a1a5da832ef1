import { hasEnded } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";
import { reportOnStderr, withCoordinator } from "./with-coordinator.ts";

declare const DROVER_VERSION: string;

export const mcpCommand: CommandSpec = {
  name: "mcp",
  summary: "offer agents as tools to an MCP client over stdin and stdout",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["claude mcp add drover -- drover mcp", "let Claude use the agents"],
    ["DROVER_API_URL=https://drover.example DROVER_API_KEY=drv_... drover mcp", "the agents of another coordinator"],
  ],
  options: {},
  run: (input) => withCoordinator(input, {}, (client, ownsRuns) => serveMcp(client, ownsRuns, input)),
};

async function serveMcp(client: ApiClient, ownsRuns: boolean, { env }: CommandInput): Promise<number> {
  const { serveAgentsStdio } = await import("./serve-agents-stdio.ts");
  const startedRuns = new Set<string>();
  const { close, ended } = serveAgentsStdio({
    client,
    version: DROVER_VERSION,
    parent_run_id: env["DROVER_RUN_ID"] || undefined,
    onStarted: (run_id) => void startedRuns.add(run_id),
    onDefect: (error, where) => reportOnStderr(`${where}: ${error instanceof Error ? error.message : String(error)}`),
  });
  // Without a coordinator, this process executes the runs, so they end with it.
  const ownRuns = ownsRuns ? startedRuns : new Set<string>();
  await waitForShutdown({
    async graceful() {
      for (const run_id of ownRuns) await client.runs.stop(run_id);
      await close();
      await waitForRuns(client, ownRuns);
    },
    immediate: close,
    done: ended.then(() => waitForRuns(client, ownRuns)),
  });
  return 0;
}

/** Waits until every run has ended or is parked. A later command continues parked runs. */
async function waitForRuns(client: ApiClient, runs: ReadonlySet<string>): Promise<void> {
  for (const run_id of runs) {
    if (isEndedOrParked((await client.runs.get(run_id)).status)) continue;
    for await (const { event } of client.runs.follow(run_id))
      if (
        event.type === "status" &&
        event.status === "parked" &&
        isEndedOrParked((await client.runs.get(run_id)).status)
      )
        break;
  }
}

function isEndedOrParked(status: Parameters<typeof hasEnded>[0]): boolean {
  return hasEnded(status) || status === "parked";
}
