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

/** A run with this message is held and reported on for `heldMs`, like an active run. Any other ends at once. */
export const heldMessage = "hold";
const heldMs = 20_000;
const talkMs = 1000;
/** As a real runner does for a silent run. */
const heartbeatMs = 3000;
const registeringAtOnce = 20;

/** Runners that speak the whole protocol over their own connections and start no processes. */
export async function simulatedRunners({ url, token, runners }: SimulatedOptions): Promise<void> {
  const names = Array.from({ length: runners }, (_, index) => `simulated-${index}`);
  const waiting = [...names];
  await Promise.all(
    Array.from({ length: registeringAtOnce }, async () => {
      for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
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
    for (const claim of claims) await carryOut(port, { runner_id, epoch, as_of_claim }, claim);
  }
}

async function carryOut(
  port: RunnerPort,
  speaker: { runner_id: string; epoch: number; as_of_claim: string },
  { run_id, attempt, invocation }: Claim,
): Promise<void> {
  let n = 0;
  const say = (text: string) => {
    n += 1;
    const event = { type: "output", stream: "stdout", text } as const;
    return [{ run_id, attempt, events: [{ n, at: new Date().toISOString(), event }] }];
  };
  const report = (events: ReturnType<typeof say>, ends: boolean) =>
    port.report({
      ...speaker,
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
      await report(say("at work"), false);
      await pause(Math.min(talkMs, heartbeatMs));
    }
  }
  await report(say("done"), true);
}
