import { afterEach, beforeEach, expect, test } from "vitest";
import { openHost, type Host } from "../../test/fixtures/dispatch/host.ts";

let host: Host;
let received: string[];
beforeEach(async () => {
  received = [];
  host = await openHost({ onPartials: (partials) => received.push(...partials.map(({ delta }) => delta.text)) });
});
afterEach(async () => {
  await host.close();
  await host.dispose();
});

async function claim(name: string) {
  const { runner_id, epoch } = await host.register({ name });
  const run_id = await host.submit({ demands: { runner_id } });
  const { claims } = await host.port.poll(
    { runner_id, epoch, claim_id: `c-${name}`, want: 1, ack_order: 0 },
    AbortSignal.timeout(60_000),
  );
  const { attempt } = claims[0]!;
  return { runner_id, epoch, run_id, attempt, held: [[run_id, attempt]] as [string, number][] };
}
type Claimed = Awaited<ReturnType<typeof claim>>;

const sendPartial = (sender: Claimed, target: { run_id: string; attempt: number }, text: string, held = sender.held) =>
  host.port.report({
    runner_id: sender.runner_id,
    epoch: sender.epoch,
    held,
    as_of_claim: null,
    events: [],
    partials: [{ run_id: target.run_id, attempt: target.attempt, delta: { kind: "assistant", text } }],
    finishes: [],
  });

test("forwards partial output only of runs that the runner has", async () => {
  const [ann, bob] = [await claim("ann"), await claim("bob")];
  await sendPartial(ann, ann, "own");
  await sendPartial(bob, ann, "of a run it does not say it holds");
  await sendPartial(bob, ann, "of a run it says it holds", [...bob.held, ...ann.held]);
  await sendPartial(ann, { ...ann, attempt: ann.attempt + 1 }, "of another attempt");
  expect(received).toEqual(["own"]);
});
