import { afterEach } from "vitest";
import { describeContract } from "../../test/contract/contract.ts";
import { runnerPortContract } from "../../test/contract/runner-port.ts";
import { openHost, type Host } from "../../test/fixtures/dispatch/host.ts";

const hosts: Host[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) {
    await host.close();
    await host.dispose();
  }
});

describeContract("runner port in process", runnerPortContract, async () => {
  const host = await openHost();
  hosts.push(host);
  return {
    port: host.port,
    register: (runner_key: string) => host.register({ runner_key }),
    submit: () => host.submit(),
    stop: async (run_id: string) => void (await host.dispatcher.stopRuns([run_id], "ann")),
    run: host.run,
    seqs: host.seqs,
  };
});
