import { type Wanted, withEmbedded } from "../embedded.ts";
import type { Local } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { ApiClient } from "../wire/client.ts";
import { findAgentsDirectory } from "./agents-directory.ts";
import type { CommandInput } from "./options.ts";
import { resolveTrust, type TrustReporting } from "./resolve-trust.ts";

/** `isOwn`: the client is of this process, and its runs end with it. */
export type Work = (client: ApiClient, isOwn: boolean) => Promise<number>;

/** The same as `withLocalRunner`, after `resolveTrust`. In one bundle, as both load the libraries that read definitions. */
export async function withTrustedLocalRunner(
  input: CommandInput,
  local: Local,
  wanted: Wanted,
  work: Work,
  telling: Required<TrustReporting>,
): Promise<number> {
  const settled = await resolveTrust(input, local, { profiles: true, agents: true }, telling);
  return withLocalRunner(input, settled, wanted, work, telling.tell);
}

/** Works with the record opened in this process, and a runner that lives as long as this command. */
export function withLocalRunner(
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
      agentsDirectory: wanted.spec ? null : findAgentsDirectory(input, local),
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
