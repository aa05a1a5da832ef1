import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Claim, RegistrationResult, RunnerPort } from "../../src/model/runner-port.ts";
import { createHttpPort } from "../../src/wire/http-port.ts";
import { announce } from "../dispatch/children.ts";

export interface SimulatedOptions {
  url: string;
  token: string;
  runners: number;
}

/** A run with this message stays active for `heldMs`. Any other run ends at once. */
export const heldMessage = "hold";
const heldMs = 20_000;
const reportMs = 1000;
/** As a real runner does for a silent run. */
const heartbeatMs = 3000;
const maxConcurrentRegistrations = 20;

/** Starts runners that implement the whole protocol over their own connections but start no processes. */
export async function simulateRunners({ url, token, runners }: SimulatedOptions): Promise<void> {
  const names = Array.from({ length: runners }, (_, index) => `simulated-${index}`);
  const unregistered = [...names];
  await Promise.all(
    Array.from({ length: maxConcurrentRegistrations }, async () => {
      for (let name = unregistered.pop(); name !== undefined; name = unregistered.pop()) {
        const port = createHttpPort({ url, token });
        void work(port, await register(port, name));
      }
    }),
  );
  announce("ready");
}

function register(port: RunnerPort, name: string): Promise<RegistrationResult> {
  return port.register({
    protocol: 1,
    runner_key: randomUUID(),
    name,
    hostname: name,
    project_dir: "/",
    executor_profile: "noop",
    executor: { type: "noop", config: {} },
    tags: [],
    require_matching_tags: false,
    agents: [],
    slots: 1,
  });
}

async function work(port: RunnerPort, { runner_id, epoch }: RegistrationResult): Promise<never> {
  const never = new AbortController().signal;
  let ack_order = 0;
  let claim_id = randomUUID();
  for (;;) {
    const { claims, orders } = await port.poll({ runner_id, epoch, claim_id, want: 1, ack_order }, never);
    ack_order = orders.at(-1)?.no ?? ack_order;
    if (claims.length === 0) continue;
    const as_of_claim = claim_id;
    claim_id = randomUUID();
    for (const claim of claims) await execute(port, { runner_id, epoch, as_of_claim }, claim);
  }
}

async function execute(
  port: RunnerPort,
  runner: { runner_id: string; epoch: number; as_of_claim: string },
  { run_id, attempt, invocation }: Claim,
): Promise<void> {
  let n = 0;
  const createEvents = (text: string) => {
    n += 1;
    const event = { type: "output", stream: "stdout", text } as const;
    return [{ run_id, attempt, events: [{ n, at: new Date().toISOString(), event }] }];
  };
  const report = (events: ReturnType<typeof createEvents>, ends: boolean) =>
    port.report({
      ...runner,
      held: [[run_id, attempt]],
      events,
      partials: [],
      finishes: ends
        ? [{ run_id, attempt, last_n: n, outcome: { status: "completed", exit_code: 0, text: null } }]
        : [],
    });
  if (invocation.parameters["message"] === heldMessage) {
    const deadline = performance.now() + heldMs;
    while (performance.now() < deadline) {
      await report(createEvents("at work"), false);
      await pause(Math.min(reportMs, heartbeatMs));
    }
  }
  await report(createEvents("done"), true);
}
