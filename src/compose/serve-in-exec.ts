import { findAgentsDirectory } from "../cli/agents-directory.ts";
import type { CommandInput } from "../cli/options.ts";
import { withEmbedded } from "../embedded.ts";
import type { Project } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { NestedServer } from "./nested-socket.ts";
import { serveNested } from "./serve-nested.ts";

interface ServeOptions {
  input: CommandInput;
  project: Project;
  /** The run of the `drover exec`. */
  run_id: string;
  /** The token of the command that the `drover exec` runs. */
  key: string;
  /** The origin of the socket that commands connect to. */
  origin: string;
  report: (message: string) => void;
}

/** Serves Drover commands inside a `drover exec`: opens a coordinator and a runner in this process until it is stopped. */
export function serveInExec({ input, project, run_id, key, origin, report }: ServeOptions): Promise<NestedServer> {
  let resolveStopped!: () => void;
  const stopped = new Promise<void>((resolve) => (resolveStopped = resolve));
  return new Promise((resolve, reject) => {
    const ended = withEmbedded(
      {
        project,
        env: input.env,
        cwd: input.cwd,
        agentsDirectory: findAgentsDirectory(input, project),
        target: {},
        requester: "drover exec",
        // Definitions that are newer than this process may be the command's own.
        commandStartedAt: performance.timeOrigin,
        onNotice: report,
        onDefect: (error, where) => report(`${where}: ${error instanceof Error ? error.message : String(error)}`),
        onAgentFaults: (faults) => faults.forEach((fault) => report(describeFault(fault))),
      },
      async (_client, coordinator) => {
        const server = serveNested(coordinator, origin, { run_id, key });
        resolve({
          accept: server.accept,
          async stop() {
            await server.stop();
            resolveStopped();
            await ended;
          },
        });
        await stopped;
      },
    );
    ended.catch(reject);
  });
}
