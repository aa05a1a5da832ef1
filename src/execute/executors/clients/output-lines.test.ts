import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { claudeConversation } from "./claude-conversation.ts";
import { defineClient } from "./define-client.ts";

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

/** Runs a client that first calls another program, here a script. Its answer is the lines that it received. */
async function runClient(script: string | null) {
  const fixture = await openContext();
  opened.push(fixture);
  const program = join(fixture.directory, "list");
  if (script !== null) writeFileSync(program, `#!/bin/sh\n${script}\n`);
  if (script !== null) chmodSync(program, 0o755);
  const client = defineClient({
    name: "asking",
    program: "sh",
    binVariable: "ASKING_BIN",
    install: "",
    variables: [],
    can: { resume: false, fork: false },
    conversation: claudeConversation,
    async prepare(turn) {
      const text = JSON.stringify(await turn.outputLines([program]));
      return { args: ["-c", "true"], reader: { read: () => [], conclude: () => ({ ok: true, text }) } };
    },
  });
  const host = {
    env: { PATH: process.env["PATH"] },
    isRoot: false,
    isolation: () => Promise.resolve("group" as const),
  };
  return client.executor(host).run(createInvocation("r1", { type: "autonomous" }, { prompt: "go" }), fixture.context);
}

test("returns all lines, or null if the program is missing", async () => {
  expect(await runClient("echo a; echo b")).toMatchObject({ status: "completed", text: '["a","b"]' });
  expect(await runClient(null)).toMatchObject({ status: "completed", text: "null" });
});

test.each([
  ["fails", "echo a; echo broken >&2; exit 3", "broken"],
  ["is killed", "echo a; kill -KILL $$", "SIGKILL"],
  ["never stops printing", "yes $(head -c 1000 /dev/zero | tr '\\0' x)", "longer than"],
  ["prints an overlong line", "echo a; head -c 60000000 /dev/zero | tr '\\0' x; echo", "too long"],
])("refuses the run if the program %s", async (_what, script, message) => {
  expect(await runClient(script)).toMatchObject({
    status: "failed",
    reason: "refused",
    message: expect.stringContaining(message) as string,
  });
});
