import { findAgentsDirectory } from "../cli/agents-directory.ts";
import type { CommandInput } from "../cli/options.ts";
import { withEmbedded } from "../embedded.ts";
import type { Local } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { NestedServer } from "./nested-socket.ts";
import { serveNested } from "./serve-nested.ts";

interface InExec {
  input: CommandInput;
  local: Local;
  /** The run of the `exec`, and the token that its command has. */
  run_id: string;
  key: string;
  /** Of the socket that commands connect to. */
  origin: string;
  report: (message: string) => void;
}

/** For a `drover run` inside a `drover exec`: opens a coordinator and a runner in this process, which end with it. */
export function serveInExec({ input, local, run_id, key, origin, report }: InExec): Promise<NestedServer> {
  let stop!: () => void;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  return new Promise((resolve, reject) => {
    const ended = withEmbedded(
      {
        local,
        env: input.env,
        cwd: input.cwd,
        agentsDirectory: findAgentsDirectory(input, local),
        wanted: {},
        name: "drover exec",
        // opened while the command runs: nothing that it wrote
        since: performance.timeOrigin,
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
            stop();
            await ended;
          },
        });
        await stopped;
      },
    );
    ended.catch(reject);
  });
}
