import { afterAll, beforeAll, expect, test } from "vitest";
import { registration, startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { claimOverHttp } from "../../test/fixtures/dispatch/claimed.ts";
import { createClient } from "../wire/client.ts";
import { createHttpPort } from "../wire/http-port.ts";

let coordinator: TestCoordinator;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000 });
});
afterAll(async () => {
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

test("lists a session's runs, ancestors and forks, continues it on the same runner, and refuses to resume it once deleted", async () => {
  const { client } = coordinator;
  await client.agents.put("chat", { type: "autonomous", executor: "claude" });
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken });
  const { runner_id, epoch } = await port.register({
    ...registration("chat"),
    executor: { type: "claude", config: {} },
  });
  const claimRun = async (claim_id: string) => {
    const signal = AbortSignal.timeout(60_000);
    const { claims } = await port.poll({ runner_id, epoch, claim_id, want: 1, ack_order: 0 }, signal);
    return claims[0]!;
  };
  const finish = async ({ run_id, attempt }: { run_id: string; attempt: number }, executor_session_id: string) => {
    const init = { type: "system", subtype: "init", executor_session_id } as const;
    const events = [{ run_id, attempt, events: [{ n: 1, at: new Date().toISOString(), event: init }] }];
    const outcome = { status: "completed", exit_code: 0, text: "ok" } as const;
    await port.report({
      runner_id,
      epoch,
      held: [],
      as_of_claim: null,
      events,
      partials: [],
      finishes: [{ run_id, attempt, last_n: 1, outcome }],
    });
  };
  const first = await client.submit({ agent_name: "chat", prompt: "hi" });
  const session_id = first.session_id!;
  const claimed = await claimRun("c1");
  await expect(client.sessions.remove(session_id)).rejects.toMatchObject({ code: "DROVER-API-030" });
  await finish(claimed, "executor-session");
  const second = await client.submit({ agent_name: "chat", mode: "resume", session_id });
  const claimedResume = await claimRun("c2");
  expect(claimedResume.invocation).toMatchObject({
    run_id: second.run_id,
    mode: "resume",
    executor_session_id: "executor-session",
    forked_from: null,
  });
  await finish(claimedResume, "executor-session");
  const fork = await client.submit({ agent_name: "chat", mode: "fork", session_id });
  const claimedFork = await claimRun("c3");
  expect(claimedFork.invocation).toMatchObject({
    mode: "fork",
    executor_session_id: "executor-session",
    forked_from: session_id,
  });
  // A command inside a run must not read the owner's other sessions.
  const attemptClient = createClient({ url: coordinator.url, token: claimedFork.attempt_token });
  for (const mode of ["resume", "fork"] as const)
    await expect(attemptClient.submit({ agent_name: "chat", mode, session_id })).rejects.toMatchObject({
      code: "DROVER-SUB-003",
    });
  await finish(claimedFork, "other");
  expect(await client.sessions.get(session_id)).toMatchObject({
    runner_id,
    project_dir: null,
    forked_from: null,
    run_count: 2,
    versions: [
      { run_id: second.run_id, parent: first.run_id, mode: "resume", executor_session_id: "executor-session" },
      { run_id: first.run_id, parent: null, mode: "start", status: "completed" },
    ],
  });
  expect(await client.sessions.get(fork.session_id!)).toMatchObject({
    forked_from: session_id,
    versions: [{ run_id: fork.run_id, parent: second.run_id }],
    ancestors: [{ session_id, forked_from: null, runs: [{ run_id: second.run_id }, { run_id: first.run_id }] }],
    descendants: [],
  });
  const nestedFork = await client.submit({
    agent_name: "chat",
    mode: "fork",
    session_id: fork.session_id!,
    fork_at_turn: 2,
  });
  const claimedNestedFork = await claimRun("c4");
  expect(claimedNestedFork.invocation).toMatchObject({ forked_from: fork.session_id, fork_at_turn: 2 });
  await finish(claimedNestedFork, "nested");
  expect(await client.sessions.get(session_id)).toMatchObject({
    ancestors: [],
    descendants: [
      { session_id: fork.session_id, forked_from: session_id, fork_at_turn: null, runs: [{ run_id: fork.run_id }] },
      { session_id: nestedFork.session_id, forked_from: fork.session_id, fork_at_turn: 2 },
    ],
  });
  const { ancestors } = await client.sessions.get(nestedFork.session_id!);
  expect(ancestors.map((each) => each.session_id)).toEqual([session_id, fork.session_id]);
  const retried = await client.runs.retry(fork.run_id);
  expect(retried).toMatchObject({ mode: "fork", forked_from: session_id });
  await client.runs.stop(retried.run_id);

  const request = { runner_id, epoch, session_ids: [session_id, fork.session_id!] };
  expect(await port.sessions(request)).toEqual({ gone: [] });
  await client.sessions.remove(session_id);
  expect(await port.sessions(request)).toEqual({ gone: [session_id] });
  await expect(client.sessions.remove(session_id)).rejects.toMatchObject({ code: "DROVER-API-014" });
  await expect(client.submit({ agent_name: "chat", mode: "resume", session_id })).rejects.toMatchObject({
    code: "DROVER-SUB-003",
  });
  expect((await client.runs.get(first.run_id)).status).toBe("completed");
  port.close();
});

test("partial output reaches the followers of its run and no others, and is not stored", async () => {
  const [followed, other] = [await claimOverHttp(coordinator, "followed"), await claimOverHttp(coordinator, "other")];
  const received: string[] = [];
  const receivedByOther: string[] = [];
  const follow = async (run_id: string, texts: string[]) => {
    const events = [];
    for await (const { event } of coordinator.client.runs.follow(run_id, { onPartial: ({ text }) => texts.push(text) }))
      events.push(event.type);
    return events;
  };
  const [following, followingOther] = [follow(followed.run_id, received), follow(other.run_id, receivedByOther)];
  const { run_id, attempt } = followed;
  const sendPartial = (text: string) =>
    followed.report({ partials: [{ run_id, attempt, delta: { kind: "assistant", text } }] });
  while (received.length === 0) {
    await sendPartial("hel");
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  await followed.append({ type: "assistant", text: "hello" });
  await Promise.all([followed.finish(), other.finish()]);
  expect(await following).toEqual(["status", "status", "assistant", "result"]);
  await followingOther;
  expect(new Set(received)).toEqual(new Set(["hel"]));
  expect(receivedByOther).toEqual([]);
  expect(JSON.stringify(await coordinator.client.runs.events(run_id))).not.toContain('"hel"');
  for (const item of [followed, other]) item.port.close();
});
