import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import type { Agent } from "../../../model/agent.ts";
import type { Delta, Invocation, RunContext } from "../../../model/executor.ts";
import type { Usage } from "../../../model/event.ts";
import { claude } from "./claude.ts";
import { codex } from "./codex.ts";
import { conversationFormat, packConversation } from "./conversation-format.ts";
import type { ClientHost } from "./definition.ts";
import { gemini } from "./gemini.ts";

const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "test", "fixtures", "clients");
const printRecording = (name: string): string => `cat ${join(fixtures, `claude-${name}.jsonl`)}`;
const session = "9bea4200-91ba-4502-9673-3190517385c0";

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

interface Options {
  agent?: Partial<Agent>;
  invocation?: Partial<Invocation>;
  host?: Partial<ClientHost>;
  context?: Partial<RunContext>;
}

/** Runs claude with a shell script as its program. The script prints what was recorded from the real one. */
async function run(script: string, { agent, invocation, host, context: overrides }: Options = {}) {
  const fixture = await openContext(overrides);
  opened.push(fixture);
  const bin = join(fixture.directory, "claude");
  writeFileSync(bin, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const executor = claude.executor({
    env: { PATH: process.env["PATH"], HOME: fixture.directory, CLAUDE_BIN: bin },
    isRoot: true,
    isolation: () => Promise.resolve("pid"),
    ...host,
  });
  const outcome = await executor.run(
    createInvocation("r1", { type: "autonomous", ...agent }, { prompt: "do it", ...invocation }),
    fixture.context,
  );
  expect(await fixture.alive()).toBe(0);
  const read = (name: string): string => readFileSync(join(fixture.directory, "work", name), "utf8");
  return { outcome, events: fixture.events, kept: fixture.kept, read };
}

test.each(Object.entries({ claude, codex, gemini }))(
  "%s refuses unsupported options before its program starts",
  async (name, client) => {
    const fixture = await openContext({ start: () => Promise.reject(new Error("it was started")) });
    opened.push(fixture);
    const executor = client.executor({
      env: { PATH: process.env["PATH"], HOME: fixture.directory },
      isRoot: true,
      isolation: () => Promise.resolve("pid"),
    });
    for (const agent of [{ provider: "anthropic" }, { output_schema: { type: "object" } }])
      expect(
        await executor.run(
          createInvocation("r1", { type: "autonomous", ...agent }, { prompt: "do it" }),
          fixture.context,
        ),
      ).toMatchObject({
        status: "failed",
        reason: "refused",
        message: expect.stringContaining(`${name} does not support ${Object.keys(agent).join()}`),
      });
  },
);

test("completes on a result and reports session, text, tools, partials and usage", async () => {
  const partials: Delta[] = [];
  const usage: Usage[] = [];
  const { outcome, events } = await run(`cat >/dev/null; ${printRecording("partial")}`, {
    context: { partial: (delta) => partials.push(delta), usage: (used) => usage.push(used) },
  });
  expect(outcome).toEqual({ status: "completed", exit_code: 0, text: "Done, hello.txt is there." });
  expect(events).toContainEqual(
    expect.objectContaining({ subtype: "init", executor_session_id: expect.any(String) as string }),
  );
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["assistant", "tool_use", "tool_result"]));
  expect(partials.map(({ text }) => text).join("")).toContain("I will write it.");
  expect(usage.at(-1)).toMatchObject({ cost_usd: expect.any(Number) as number });
});

test("passes any prompt through stdin and never as an argument", async () => {
  const prompt = "--help\n$(id) `id` \0 '\" 🐑\n".repeat(20_000);
  const { outcome, read } = await run(`cat > prompt.txt; printf '%s\\n' "$@" > argv.txt; ${printRecording("text")}`, {
    invocation: { prompt },
  });
  expect(outcome.status).toBe("completed");
  expect(read("prompt.txt")).toBe(prompt.trim());
  expect(read("argv.txt")).not.toContain("$(id)");
});

test.each([
  ["exit 0", "provider_invalid_response", "exited with 0 but reported no result"],
  [`${printRecording("interrupted")}; exit 0`, "provider_invalid_response", "reported no result"],
  ["echo 'no such option' >&2; exit 3", "exit_nonzero", "no such option"],
  ["exit 4", "exit_nonzero", "exited with 4"],
  ["kill -KILL $$", "signalled", "SIGKILL"],
  ["exit 143", "signalled", "SIGTERM"],
  [`${printRecording("error-401")}; exit 1`, "provider_auth", "Invalid API key"],
  [`${printRecording("error-429")}; exit 1`, "provider_rate_limit", "429"],
  [`${printRecording("refused-connection")}; exit 1`, "provider_network", "refused"],
  [`${printRecording("max-turns")}; exit 1`, "max_turns", "max_turns"],
  [printRecording("denied"), "permission_denied", "Write"],
])("fails `%s` with %s", async (script, reason, message) => {
  const { outcome } = await run(`cat >/dev/null; ${script}`);
  expect(outcome).toMatchObject({ status: "failed", reason, message: expect.stringContaining(message) as string });
});

test("shortens a long stderr to its start and end", async () => {
  const { outcome } = await run("seq 5000 >&2; echo the cause >&2; exit 1");
  const message = expect.stringMatching(/^1\n2\n[^]{0,490}\n5000\nthe cause$/) as string;
  expect(outcome).toMatchObject({ reason: "exit_nonzero", message });
});

test("completes if another tool succeeds after a denial", async () => {
  const success = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"ok"}]}}`;
  const file = join(fixtures, "claude-denied.jsonl");
  const { outcome, events } = await run(`head -n -1 ${file}; echo '${success}'; tail -n 1 ${file}`);
  expect(outcome).toMatchObject({ status: "completed" });
  expect(events).toContainEqual(expect.objectContaining({ type: "system", subtype: "permission_denied" }));
});

test("keeps a short excerpt of unknown lines and continues", async () => {
  const unknownLines = [
    "echo 'plain words'",
    "echo '{broken'",
    `echo '{"type":"brand_new","x":1}'`,
    'printf \'{"type":"assistant","x":"\'; head -c 20000000 /dev/zero | tr \'\\0\' y; echo \'"}\'',
    `printf '{"type":"assistant","message":{"content":[{"type":"text","text":"'; head -c 3000000 /dev/zero | tr '\\0' z; echo '"}]}}'`,
    "printf '\\377\\376\\n'",
    "echo '[1,2]'",
    "echo null",
  ];
  const { outcome, events } = await run(`${unknownLines.join("\n")}\n${printRecording("text")}`);
  expect(outcome).toMatchObject({ status: "completed", text: "Hello there, world of clients." });
  expect(events).toContainEqual({ type: "output", stream: "stdout", text: "plain words\n" });
  expect(events).toContainEqual(expect.objectContaining({ subtype: "client_message" }));
  for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(300_000);
});

test("says how to install a missing client", async () => {
  const { outcome } = await run("", { host: { env: { PATH: "/nowhere" } } });
  expect(outcome).toMatchObject({ status: "failed", reason: "dependency_missing" });
  expect(outcome).toMatchObject({
    message: expect.stringContaining("npm install -g @anthropic-ai/claude-code") as string,
  });
  const wrong = await run("", { invocation: { executor_config: { bin: "/etc/passwd" } } });
  expect(wrong.outcome).toMatchObject({
    reason: "dependency_missing",
    message: expect.stringContaining("/etc/passwd") as string,
  });
});

test("continues a session by its id, and refuses anything that is not a session id", async () => {
  const argv = `cat >/dev/null; printf '%s\\n' "$@" > argv.txt; ${printRecording("text")}`;
  const resumed = await run(argv, { invocation: { mode: "resume", executor_session_id: session } });
  expect(resumed.read("argv.txt").split("\n")).toContain(`--resume=${session}`);
  const fork = await run(argv, { invocation: { mode: "fork", executor_session_id: session } });
  expect(fork.read("argv.txt").split("\n")).toEqual(expect.arrayContaining([`--resume=${session}`, "--fork-session"]));
  for (const id of [null, "--help", "", "latest", `${session}\n`]) {
    const { outcome } = await run(argv, { invocation: { mode: "resume", executor_session_id: id } });
    expect(outcome).toMatchObject({ status: "failed", reason: "session_not_found" });
  }
  const unknownSession = await run(`${printRecording("unknown-session")}; exit 1`, {
    invocation: { mode: "resume", executor_session_id: session },
  });
  expect(unknownSession.outcome).toMatchObject({ reason: "session_not_found" });
});

test("refuses a run without a prompt before it starts anything", async () => {
  const { outcome } = await run(printRecording("text"), { invocation: { prompt: " \n" } });
  expect(outcome).toMatchObject({ reason: "refused", message: expect.stringContaining("prompt") as string });
});

test("records full auto, and refuses it as root without isolation unless the operator allows it", async () => {
  const agent: Partial<Agent> = { permissions: { mode: "bypassPermissions" } };
  const script = `cat >/dev/null; echo "[$IS_SANDBOX]" > sandbox.txt; ${printRecording("text")}`;
  const hostWithoutIsolation: Partial<ClientHost> = { isolation: () => Promise.resolve("group") };
  expect((await run(script, { agent, host: hostWithoutIsolation })).outcome).toMatchObject({
    status: "failed",
    reason: "refused",
    message: expect.stringContaining("allow_full_auto") as string,
  });
  const allowedRuns = [
    await run(script, { agent }),
    await run(script, {
      agent,
      host: hostWithoutIsolation,
      invocation: { executor_config: { allow_full_auto: true } },
    }),
  ];
  for (const { outcome, events, read } of allowedRuns) {
    expect(outcome.status).toBe("completed");
    expect(events).toContainEqual(expect.objectContaining({ type: "system", subtype: "full_auto" }));
    expect(read("sandbox.txt")).toBe("[1]\n");
  }
  const user = await run(script, { agent, host: { ...hostWithoutIsolation, isRoot: false } });
  expect(user.read("sandbox.txt")).toBe("[]\n");
  const edits = await run(script);
  expect(edits.read("sandbox.txt")).toBe("[]\n");
  expect(edits.events).not.toContainEqual(expect.objectContaining({ subtype: "full_auto" }));
});

test("returns the saved result of a run without calling its program again", async () => {
  const bytes = packConversation({ client: "claude", run_id: "r1", done: { text: "did it", exit_code: 0 }, files: [] });
  const load = async () => ({ format: conversationFormat, bytes, here: false });
  const context = { session: { load, save: () => Promise.reject(new Error("nothing is new")) } };
  const continuation = { continues: true, executor_session_id: session };
  const continued = await run("echo called > called", { context, invocation: continuation });
  expect(continued.outcome).toMatchObject({ status: "completed", text: "did it" });
  expect(() => continued.read("called")).toThrow("ENOENT");
  const other = await run("echo called > called", {
    context,
    invocation: { ...continuation, continues: false, mode: "resume" },
  });
  expect(other.read("called")).toBe("called\n");
});

test("refuses to continue a session of another client", async () => {
  const bytes = packConversation({ client: "codex", run_id: "r0", done: null, files: [] });
  const load = async () => ({ format: conversationFormat, bytes, here: false });
  const context = { session: { load, save: () => Promise.resolve() } };
  const { outcome } = await run("true", { context, invocation: { mode: "resume", executor_session_id: session } });
  expect(outcome).toMatchObject({ status: "failed", reason: "session_not_found" });
  expect(outcome).toMatchObject({ message: expect.stringContaining("a session of codex") as string });
});
