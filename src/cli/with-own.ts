import { type Wanted, withEmbedded } from "../embedded.ts";
import type { Local } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { Client } from "../wire/client.ts";
import { agentsFolder } from "./agents-folder.ts";
import type { CommandInput } from "./options.ts";

/** `isOwn`: the client is of this process, and its runs end with it. */
export type Work = (client: Client, isOwn: boolean) => Promise<number>;

/** Works with the record opened in this process, and a runner that lives as long as this command. */
export function withOwn(
  input: CommandInput,
  local: Local,
  wanted: Wanted,
  work: Work,
  report: (message: string) => void,
): Promise<number> {
  return withEmbedded(
    {
      local,
      env: input.env,
      cwd: input.cwd,
      agentsDirectory: wanted.spec ? null : agentsFolder(input, local),
      wanted,
      name: "drover run",
      detach: input.options["detach"] !== undefined,
      onNotice(message) {
        if (!input.options["quiet"]) report(message);
      },
      onDefect: (error, where) => report(`${where}: ${error instanceof Error ? error.message : String(error)}`),
      onAgentFaults: (faults) => faults.forEach((fault) => report(`${describeFault(fault)} [${fault.code}]`)),
    },
    (client) => work(client, true),
  );
}
