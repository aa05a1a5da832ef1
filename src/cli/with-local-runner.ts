import { type EmbeddedTarget, withEmbedded } from "../embedded.ts";
import type { Project } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import type { ApiClient } from "../wire/client.ts";
import { findAgentsDirectory } from "./agents-directory.ts";
import type { CommandInput } from "./options.ts";
import { resolveTrust, type TrustReporter } from "./resolve-trust.ts";

/** `ownsRuns` is true if the runs belong to this process and end with it. */
export type Work = (client: ApiClient, ownsRuns: boolean) => Promise<number>;

/** Calls `resolveTrust`, then `withLocalRunner`. They share a bundle because both load the libraries that read definitions. */
export async function withTrustedLocalRunner(
  input: CommandInput,
  project: Project,
  target: EmbeddedTarget,
  work: Work,
  reporter: Required<TrustReporter>,
): Promise<number> {
  const trusted = await resolveTrust(input, project, { profiles: true, agents: true }, reporter);
  return withLocalRunner(input, trusted, target, work, reporter.print);
}

/** Calls `work` with the record opened in this process and a runner that lives as long as this command. */
export function withLocalRunner(
  input: CommandInput,
  project: Project,
  target: EmbeddedTarget,
  work: Work,
  report: (message: string) => void,
): Promise<number> {
  return withEmbedded(
    {
      project,
      env: input.env,
      cwd: input.cwd,
      agentsDirectory: target.preparedAgent ? null : findAgentsDirectory(input, project),
      target,
      requester: "drover run",
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
