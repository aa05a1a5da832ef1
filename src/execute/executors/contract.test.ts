import { build } from "esbuild";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { describeContract } from "../../../test/contract/contract.ts";
import { executorContract, type ExecutorSubject } from "../../../test/contract/executor.ts";
import { createInvocation } from "../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../test/fixtures/execute/open-context.ts";
import { start } from "../../process/start.ts";
import { createRedactor } from "../../redact/redactor.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";
import { createCommandExecutor } from "./command-executor.ts";
import { loadModuleExecutor } from "./module-executor.ts";
import { createProceduralExecutor } from "./procedural/procedural.ts";

const opened: { close(): Promise<void> }[] = [];
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "drover-executors-"));
  await script("endless", "sleep 1000 & wait");
  await script("stubborn", "trap '' TERM; sleep 1000 & wait; wait");
  // Wait for the file, because the process would otherwise be killed before it starts.
  await script(
    "leaving",
    '(touch "$0.left"; exec sleep 1000) >/dev/null 2>&1 & until [ -e "$0.left" ]; do :; done; echo {}',
  );
  await script("ok", 'echo "{\\"ok\\":true}"; echo note >&2');
  await script("bad", "echo wrong >&2; exit 3");
  await build({
    entryPoints: [resolve("src/procedural-exec.ts")],
    outfile: join(directory, "exec.cjs"),
    bundle: true,
    platform: "node",
    format: "cjs",
    footer: { js: "module.exports.main();" },
    logLevel: "error",
  });
});
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function script(name: string, body: string): Promise<void> {
  await writeFile(join(directory, name), `#!/bin/sh\n${body}\n`);
  await chmod(join(directory, name), 0o755);
}

const resolveOptions = () => ({ runnerDirectory: directory, variables: { allowed: [], env: process.env } });

function subject(executor: ExecutorSubject["executor"], prefix = ""): ExecutorSubject {
  const optionalCases = executor.can.ask
    ? {
        asking: { invocation: createInvocation("r6", { command: "ask" }, { prompt: "ask" }), edited: { n: 42 } },
        receivingInput: createInvocation("r7", { command: "hear" }, { prompt: "hear" }),
      }
    : {};
  return {
    executor,
    ...optionalCases,
    succeeding: createInvocation("r1", { command: `${prefix}ok` }),
    failing: createInvocation("r2", { command: `${prefix}bad` }),
    endless: createInvocation("r3", { command: `${prefix}endless` }),
    stubborn: createInvocation("r4", { command: `${prefix}stubborn` }),
    leaving: createInvocation("r5", { command: `${prefix}leaving` }),
    async open() {
      const context = await openContext();
      opened.push(context);
      return context;
    },
  };
}

describeContract("the procedural executor", executorContract, async () =>
  subject(
    createProceduralExecutor({
      ...resolveOptions(),
      redactor: createRedactor({ variables: {} }),
      maxOutputBytes: 1024 * 1024,
      checkOutput: () => Promise.resolve([]),
    }),
  ),
);

describeContract("drover-procedural-exec as a command", executorContract, async () =>
  subject(
    createCommandExecutor({
      ...resolveOptions(),
      name: "procedural-exec",
      command: `${process.execPath} ${join(directory, "exec.cjs")}`,
    }),
  ),
);

describeContract("a program that asks questions, receives input and parks", executorContract, async () =>
  subject(
    createCommandExecutor({
      ...resolveOptions(),
      name: "program",
      command: `${process.execPath} ${resolve("test/fixtures/execute/command-executor.mjs")}`,
      can: { ask: true, input: true, state: true, park: true },
    }),
    `${directory}/`,
  ),
);

describeContract("an executor made by defineExecutor", executorContract, async () =>
  subject(
    defineExecutor({
      name: "defined",
      async execute({ invocation, runCli }) {
        return (await runCli({ command: [join(directory, invocation.agent.command!)] })).stdout;
      },
    }),
  ),
);

describeContract("an executor from a TypeScript module", executorContract, async () =>
  subject(
    await loadModuleExecutor({
      module: resolve("test/fixtures/execute/module-executor.ts"),
      runnerDirectory: directory,
      cacheDirectory: join(directory, "cache"),
      config: { greeting: "hi" },
      start,
      env: process.env,
    }),
    `${directory}/`,
  ),
);
