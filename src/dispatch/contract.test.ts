import { afterEach } from "vitest";
import { describeContract } from "../../test/contract/contract.ts";
import { runnerPortContract } from "../../test/contract/runner-port.ts";
import { openHost, sampleAgent, type Host } from "../../test/fixtures/dispatch/host.ts";

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
  const chat = sampleAgent({ name: "chat", type: "autonomous", command: null, executor: "procedural" });
  host.agents.setFileAgents([sampleAgent(), chat]);
  return {
    port: host.port,
    register: (runner_key: string) => host.register({ runner_key }),
    submit: (attended = false) => host.submit(attended ? { agent_name: "chat", attended, prompt: "go" } : {}),
    answer: async (run_id, request_id, answer) =>
      void (await host.store.apply([{ op: "answer_question", run_id, request_id, answer, by: "ann" }])),
    input: async (run_id, text) => void (await host.store.apply([{ op: "send_input", run_id, text, by: "ann" }])),
    stop: async (run_id: string) => void (await host.dispatcher.stopRuns([run_id], "ann")),
    run: host.run,
    seqs: host.seqs,
  };
});
