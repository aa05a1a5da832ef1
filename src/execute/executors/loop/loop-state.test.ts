import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { type ModelServer, startModelServer } from "../../../../test/model-server/server.ts";
import { createModelExecutor } from "./model-executor.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

let idCount = 0;
const executor = createModelExecutor({
  env: { ANTHROPIC_API_KEY: "key" },
  newId: () => `conversation-${++idCount}`,
  version: "0",
  checkInput: async () => [],
});
const call = (name: string, input: Record<string, unknown>) => ({ name, input, exact: true as const });
const append = call("command_run", { command: "echo once >> log" });
const turns = [
  { tool: call("file_write", { path: "a", content: "hello" }) },
  { tools: [call("file_read", { path: "a" }), append, call("file_read", { path: "log" })] },
  { text: "Done." },
];

class Killed extends Error {}

/** Runs one run in one work directory. The runner dies at the given save of the first attempt, before or after it is stored. */
async function runAttempts(server: ModelServer, death: { at: number; stored: boolean }) {
  const opened = await openContext();
  cleanups.push(opened.close);
  const { session } = opened.context;
  let saves = 0;
  const failingSession: typeof session = {
    load: session.load,
    async save(...args) {
      saves += 1;
      if (saves < death.at || death.stored) await session.save(...args);
      if (saves >= death.at) throw new Killed();
    },
  };
  const invocation = createInvocation(
    "r1",
    { type: "autonomous", provider: "anthropic", model: "m", permissions: { mode: "bypassPermissions" } },
    { prompt: "do it", executor_config: { base_url: server.url } },
  );
  const first = await executor
    .run(invocation, { ...opened.context, session: failingSession })
    .catch((error: unknown) => error);
  const continues = opened.saved.state !== null;
  const outcome = first instanceof Killed ? await executor.run({ ...invocation, continues }, opened.context) : first;
  const outputs = opened.events.flatMap((event) =>
    event.type === "tool_result" ? [JSON.stringify(event.output)] : [],
  );
  const log = join(opened.directory, "work", "log");
  return { outcome, saves, outputs, log: existsSync(log) ? readFileSync(log, "utf8") : "" };
}

it.each([true, false])(
  "continues after a runner died at any save (stored: %s), without repeating an answered request or an effect",
  async (stored) => {
    const server = await startModelServer([{ when: /^/, turns }]);
    cleanups.push(server.stop);
    for (let index = 1; ; index += 1) {
      const before = server.requests.length;
      const { outcome, saves, outputs, log } = await runAttempts(server, { at: index, stored });
      expect(outcome).toMatchObject({ status: "completed", text: "Done." });
      // The number of earlier answers identifies a turn: each is requested once, unless it was not saved.
      const answersBefore = server.requests
        .slice(before)
        .map(({ messages }) => messages.filter(({ role }) => role === "assistant"));
      const counts = answersBefore.map(({ length }) => length);
      expect(counts.length - new Set(counts).size).toBeLessThanOrEqual(stored ? 0 : 1);
      const unknown = outputs.filter((output) => output.includes("effect_unknown"));
      expect(unknown.length).toBeLessThanOrEqual(1);
      // The command never runs twice. It may not run at all only if the model was informed.
      expect(["once\n", ...(unknown.length > 0 ? [""] : [])]).toContain(log);
      if (saves < index) return;
    }
  },
);

it.each([
  ["has not been made", 4, "cancelled"],
  ["may have taken effect", 5, "effect_unknown"],
])(
  "tells the model about a call that %s, repeats reads, and then sends the message of the next run",
  async (_, death, code) => {
    const server = await startModelServer([{ when: /^/, turns }]);
    cleanups.push(server.stop);
    const opened = await openContext();
    cleanups.push(opened.close);
    const invocation = createInvocation(
      "r1",
      { type: "autonomous", provider: "anthropic", model: "m", permissions: { mode: "bypassPermissions" } },
      { prompt: "do it", executor_config: { base_url: server.url } },
    );
    let saves = 0;
    const { session } = opened.context;
    const failingSession: typeof session = {
      load: session.load,
      async save(...args) {
        saves += 1;
        await session.save(...args);
        // 4: the answer with three calls; 5: the result of the first call
        if (saves === death) throw new Killed();
      },
    };
    await expect(executor.run(invocation, { ...opened.context, session: failingSession })).rejects.toThrow(Killed);
    const next = { ...invocation, run_id: "r2", mode: "resume" as const, prompt: "and now?" };
    expect(await executor.run(next, opened.context)).toMatchObject({ status: "completed" });
    const results = opened.events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));
    expect(results.slice(0, 4)).toMatchObject([
      { ok: true },
      { ok: true, content: "hello" },
      { ok: false, error: { code } },
      { ok: false, error: { code: "not_found" } },
    ]);
    const last = server.requests.at(-1)!.messages;
    expect(last.flatMap(({ role, text }) => (role === "user" && text !== "" ? [text] : []))).toEqual([
      "do it",
      "and now?",
    ]);
  },
);
