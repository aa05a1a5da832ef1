import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packConversation } from "../../../src/execute/executors/clients/conversation-format.ts";
import { readFilesBelow, type Machine, openFleet, secret } from "./session-fleet.ts";

test.each([
  ["claude", "user"],
  ["claude", "session"],
  ["claude-sdk", "user"],
  ["claude-sdk", "session"],
  ["codex", "user"],
  ["codex", "session"],
  ["gemini", "session"],
] as const)(
  "a session of %s with home %s continues on a machine with another HOME, and back again",
  async (client, home) => {
    const { startMachine, run, lastRequestTexts, host } = await openFleet(client);
    const first = await startMachine({ profile: { home } });
    const firstRun = await run("say one");
    expect(firstRun).toMatchObject({ status: "completed", result_text: "answer to: say one" });
    const session_id = firstRun.session_id!;
    expect(await host.store.read.session(session_id)).toMatchObject({ portable: true });

    await first.stop();
    const second = await startMachine({ profile: { home } });
    const resumed = await run("say two", { mode: "resume", session_id });
    expect(resumed).toMatchObject({ status: "completed", result_text: "answer to: say two" });
    const firstTurn = ["user: say one", "assistant: answer to: say one"];
    expect(lastRequestTexts()).toEqual([...firstTurn, "user: say two"]);

    await second.stop();
    await startMachine({ profile: { home }, directory: first.directory });
    await run("say three", { mode: "resume", session_id });
    expect(lastRequestTexts()).toEqual([
      ...firstTurn,
      "user: say two",
      "assistant: answer to: say two",
      "user: say three",
    ]);
  },
);

const transcripts = (machine: Machine) =>
  Object.keys(readFilesBelow(join(machine.home, ".claude", "projects"))).filter((path) => path.endsWith(".jsonl"));

test("a moved session brings its files without secrets and leaves the operator's files unchanged", async () => {
  const { startMachine, run, lastRequestTexts, host } = await openFleet("claude");
  const first = await startMachine();
  const firstRun = await run("write notes/a.txt");
  expect(firstRun).toMatchObject({ status: "completed" });
  const session_id = firstRun.session_id!;
  expect(readFileSync(join(first.scratch(session_id), "notes", "a.txt"), "utf8")).toBe(`x ${secret}`);
  const stored = host.store.connection.sql(
    "select bytes from session_states union all select bytes from session_files",
  );
  for (const { bytes } of stored.all()) expect(Buffer.from(bytes as Uint8Array).includes(secret)).toBe(false);

  await first.stop();
  const second = await startMachine();
  mkdirSync(join(second.home, ".claude", "projects", "-their-own"), { recursive: true });
  const operatorFiles = {
    "notes.txt": "mine",
    ".claude/settings.json": "{}",
    ".claude/projects/-their-own/0b2f9a3c-1111-4222-8333-444455556666.jsonl": '{"type":"summary"}\n',
  };
  for (const [path, text] of Object.entries(operatorFiles)) writeFileSync(join(second.home, path), text);
  const resumed = await run("say two", { mode: "resume", session_id });
  expect(resumed).toMatchObject({ status: "completed", result_text: "answer to: say two" });
  expect(
    lastRequestTexts()
      .filter((line) => line.startsWith("user: "))
      .slice(-1),
  ).toEqual(["user: say two"]);
  expect(readFileSync(join(second.scratch(session_id), "notes", "a.txt"), "utf8")).toMatch(/^x \[redacted/i);
  expect(readFilesBelow(second.home)).toMatchObject(operatorFiles);
  expect(transcripts(second)).toHaveLength(2);
});

test("a session in a project stays on its machine, and other runners say why they cannot continue it", async () => {
  const { startMachine, run, host } = await openFleet("claude", { workspace: "in_place" });
  const first = await startMachine();
  const firstRun = await run("say one");
  const session_id = firstRun.session_id!;
  expect(await host.store.read.session(session_id)).toMatchObject({ portable: false });
  expect(await run("say two", { mode: "resume", session_id })).toMatchObject({ status: "completed" });
  await first.stop();
  await startMachine();
  const run_id = await host.submit({ agent_name: "claude", prompt: "say three", mode: "resume", session_id });
  expect(JSON.stringify(await host.store.read.why(run_id))).toContain("works in a project there");
});

test("a conversation of 12 MB moves", async () => {
  const { startMachine, run, lastRequestTexts } = await openFleet("claude");
  const first = await startMachine();
  const session_id = (await run("say one")).session_id!;
  const [name] = transcripts(first);
  const path = join(first.home, ".claude", "projects", name!);
  for (let index = 0; index < 12; index += 1)
    appendFileSync(path, `${JSON.stringify({ type: "padding", text: randomBytes(786_432).toString("base64") })}\n`);
  await run("say two", { mode: "resume", session_id });
  await first.stop();
  const second = await startMachine();
  await run("say three", { mode: "resume", session_id });
  expect(lastRequestTexts()).toHaveLength(5);
  const [moved] = transcripts(second);
  expect(readFileSync(join(second.home, ".claude", "projects", moved!)).length).toBeGreaterThan(12 * 1024 * 1024);
});

test("the conversation of a stopped run moves", async () => {
  const { startMachine, run, lastRequestTexts, host, model } = await openFleet("claude");
  const first = await startMachine();
  const run_id = await host.submit({ agent_name: "claude", prompt: "hang" });
  await expect.poll(() => model.requests.length).toBeGreaterThan(0);
  await host.store.apply([{ op: "stop_runs", run_ids: [run_id], reason: "user", by: "ann" }]);
  await expect.poll(async () => (await host.run(run_id)).status).toBe("cancelled");
  const { session_id } = await host.run(run_id);
  await first.stop();
  await startMachine();
  await run("say two", { mode: "resume", session_id: session_id! });
  expect(lastRequestTexts().join()).toMatch(/hang.*say two$/s);
});

test.each(["../../../../evil.jsonl", "/evil.jsonl", "evil.jsonl", ""])(
  "a saved conversation with a file called %j is refused, and nothing is written",
  async (name) => {
    const { startMachine, run, host } = await openFleet("claude");
    const first = await startMachine();
    const { session_id, run_id } = await run("say one");
    await first.stop();
    const files = [{ name, bytes: Buffer.from("{}\n") }];
    const bytes = packConversation({ client: "claude", run_id, done: null, files });
    host.store.connection.sql("update session_states set bytes = ?").run(bytes);
    const second = await startMachine();
    const resumed = await run("say two", { mode: "resume", session_id: session_id! });
    expect(resumed).toMatchObject({ status: "failed", reason: "session_not_found" });
    expect(resumed.error).toContain(JSON.stringify(name));
    expect(Object.keys(readFilesBelow(second.directory)).filter((path) => path.endsWith("evil.jsonl"))).toEqual([]);
    expect(existsSync(join(second.directory, "..", "evil.jsonl"))).toBe(false);
  },
);

const conversations = (client: "claude" | "codex", { home }: Machine) =>
  Object.fromEntries(
    Object.entries(readFilesBelow(join(home, `.${client}`, client === "claude" ? "projects" : "sessions"))).filter(
      ([path]) => path.endsWith(".jsonl"),
    ),
  );

test.each(["claude", "codex"] as const)(
  "a fork of %s at turn 1 of 3 knows only that turn, moves, and leaves the original unchanged",
  async (client) => {
    const { startMachine, run, lastRequestTexts } = await openFleet(client);
    const first = await startMachine();
    const { session_id } = await run("say one");
    for (const prompt of ["say two", "say three"]) await run(prompt, { mode: "resume", session_id: session_id! });
    const of = { mode: "fork" as const, session_id: session_id! };
    const original = conversations(client, first);
    expect(Object.keys(original)).toHaveLength(1);

    const forkBeyondEnd = await run("say what", { ...of, fork_at_turn: 4 });
    expect(forkBeyondEnd).toMatchObject({ status: "failed", reason: "refused" });
    expect(forkBeyondEnd.error).toContain("it has 3 turns");
    expect(conversations(client, first)).toEqual(original);

    const fork = await run("say other", { ...of, fork_at_turn: 1 });
    expect(fork).toMatchObject({ status: "completed", forked_from: session_id, fork_at_turn: 1 });
    const turnOne = ["user: say one", "assistant: answer to: say one"];
    expect(lastRequestTexts()).toEqual([...turnOne, "user: say other"]);
    const wholeHistory = await run("say whole", of);
    expect(lastRequestTexts()).toHaveLength(7);
    expect(conversations(client, first)).toMatchObject(original);

    await first.stop();
    await startMachine();
    await run("say more", { mode: "resume", session_id: fork.session_id! });
    expect(lastRequestTexts()).toEqual([
      ...turnOne,
      "user: say other",
      "assistant: answer to: say other",
      "user: say more",
    ]);
    await run("say more", { mode: "resume", session_id: wholeHistory.session_id! });
    expect(lastRequestTexts()).toHaveLength(9);
    await run("say second", { mode: "fork", session_id: wholeHistory.session_id!, fork_at_turn: 2 });
    expect(lastRequestTexts()).toEqual([
      ...turnOne,
      "user: say two",
      "assistant: answer to: say two",
      "user: say second",
    ]);
  },
);
