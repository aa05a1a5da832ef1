import type { Run } from "../../model/run.ts";
import { describeContract } from "../../../test/contract/contract.ts";
import { runnerPortContract, type RunnerPortSubject } from "../../../test/contract/runner-port.ts";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";

/** Runner tests use this fake, so it must keep the same contract as the real ports. */
describeContract("the port in memory", runnerPortContract, async (): Promise<RunnerPortSubject> => {
  const coordinator = createMemoryCoordinator({ holdMs: 100 });
  return {
    port: coordinator.port,
    register: (runner_key) =>
      coordinator.port.register({
        protocol: 1,
        runner_key,
        hostname: "here",
        project_dir: "/",
        executor_profile: "test",
        executor: { type: "procedural", config: {} },
        tags: [],
        require_matching_tags: false,
        agents: [],
        slots: 4,
      }),
    submit: async (attended = false) => coordinator.submit({ command: "true" }, { attended }),
    answer: async (run_id, request_id, answer) => coordinator.answer(run_id, request_id, answer),
    input: async (run_id, text) => coordinator.order(run_id, { input: { text, seq: 1 } }),
    stop: async (run_id) => coordinator.order(run_id, { stop: "user" }),
    async run(run_id) {
      const { status, failures, outcome } = coordinator.runs.get(run_id)!;
      const exit_code = outcome?.status === "completed" ? outcome.exit_code : null;
      return { run_id, status, failures, exit_code, session_id: run_id } as Run; // These are the fields that the contract checks.
    },
    seqs: async (run_id) => coordinator.runs.get(run_id)!.log.map((_, index) => index + 1),
  };
});
