import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { toClaudeArgs } from "../../../src/execute/executors/clients/claude.ts";
import { toCodexArgs } from "../../../src/execute/executors/clients/codex.ts";
import type { Turn } from "../../../src/execute/executors/clients/definition.ts";
import { toGeminiArgs } from "../../../src/execute/executors/clients/gemini.ts";
import { toGeminiPolicy } from "../../../src/execute/executors/clients/gemini-policy.ts";
import { clients } from "../../../src/execute/executors/clients/index.ts";
import { prependSystemPrompt } from "../../../src/execute/executors/clients/prepend-system-prompt.ts";
import { type Agent, agentSchema } from "../../../src/model/agent.ts";
import { type ClientName, clientNames } from "../../clients/clients.ts";
import { createInvocation } from "../../fixtures/execute/memory-port.ts";
import { openContext } from "../../fixtures/execute/open-context.ts";
import { root } from "../drover.ts";
import { type AgentHarness, startAgentHarness } from "./harness.ts";
import { hostileValues } from "./hostile-values.ts";
import { waitForRunEnd, submit } from "./runs.ts";

const buildArguments: Readonly<Record<ClientName, (turn: Turn) => string[]>> = {
  claude: (turn) => toClaudeArgs(turn, { systemPrompt: "/tmp/run/system-prompt.md", mcpConfig: "/tmp/run/mcp.json" }),
  codex: (turn) => toCodexArgs(turn, "/home/dev/work"),
  gemini: (turn) => toGeminiArgs(turn, ["/tmp/run/gemini-policy.toml"]),
};

interface Words {
  model: string;
  tool: string;
  prompt: string;
  system: string;
  name: string;
}

const harmlessWords: Words = { model: "opus", tool: "Read", prompt: "hello", system: "Be brief.", name: "agent" };

function createTurn({ model, tool, prompt, system, name }: Words): Turn {
  const agent: Agent = {
    ...agentSchema.parse({ name: "agent", type: "autonomous", model, system_prompt: system }),
    name,
    permissions: { mode: "acceptEdits", allowed_tools: [tool, tool], denied_tools: [tool] },
  };
  const parameters = { [prompt]: prompt };
  return {
    invocation: { ...createInvocation("r1", {}), agent, prompt, parameters },
    prompt,
    systemPrompt: system,
    mode: "acceptEdits",
    session: null,
    fork: false,
    config: {},
    workDir: "/home/dev/work",
    homeDir: "/home/dev",
    tmpDir: "/tmp/run",
    outputLines: () => Promise.resolve([]),
    env: {},
    isRoot: false,
  };
}

test("300 hostile values stay values: no client gets an extra option or argument", () => {
  expect(new Set(hostileValues).size).toBeGreaterThan(290);
  expect(hostileValues).toHaveLength(300);
  for (const client of clientNames) {
    const usual = buildArguments[client](createTurn(harmlessWords));
    for (const value of hostileValues) {
      const changed = { model: value, tool: value, prompt: value, system: value, name: value };
      const args = buildArguments[client](createTurn(changed));
      const expected = usual.map((word) =>
        word
          .replace(/^(--model=)opus$/, (_all, flag: string) => flag + value)
          .replace(/^(--(?:dis)?allowedTools=)Read$/, (_all, flag: string) => flag + value),
      );
      expect(args).toEqual(expected);
    }
  }
});

test("a system prompt stays text before the prompt, and the prompt is unchanged", () => {
  for (const value of hostileValues) {
    const text = prependSystemPrompt(createTurn({ ...harmlessWords, prompt: value, system: value }));
    expect(text.endsWith(value)).toBe(true);
  }
});

test("tools become strings in gemini's policy and never rules", () => {
  const shapes = [
    /^\[\[rule\]\]$/,
    /^(?:toolName|commandPrefix) = "(?:[^"\\\p{Cc}]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"$/u,
    /^decision = "(?:allow|deny)"$/,
    /^priority = (?:600|900)$/,
    /^$/,
  ];
  for (const value of hostileValues.flatMap((hostile) => [hostile, `${hostile}(${hostile})`])) {
    const policy = toGeminiPolicy("default", { allowed_tools: [value], denied_tools: [value] });
    const lines = policy.split("\n").filter((line) => line !== "allowRedirection = true");
    expect(lines.filter((line) => line === "[[rule]]")).toHaveLength(2);
    for (const line of lines) expect(shapes.filter((shape) => shape.test(line))).not.toEqual([]);
  }
});

test("a directory's name stays one key in codex's list of projects", () => {
  const list =
    /^--config=projects=\{(?:,?"(?:[^"\\\p{Cc}]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"=\{trust_level="untrusted"\})+\}$/u;
  for (const value of hostileValues) {
    const args = toCodexArgs(createTurn(harmlessWords), `/home/${value}`);
    expect(args.filter((word) => list.test(word))).toHaveLength(1);
    expect(args).toHaveLength(toCodexArgs(createTurn(harmlessWords), "/home").length);
  }
});

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const context of opened.splice(0)) await context.close();
});

test("a session id that is not the client's is never passed to it", async () => {
  const starts: unknown[] = [];
  const one = await openContext({
    async start(command) {
      starts.push(command);
      throw new Error("nothing should be started");
    },
  });
  opened.push(one);
  for (const client of clientNames) {
    const executor = clients[client]!.executor({
      env: { PATH: process.env["PATH"], HOME: one.directory, [`${client.toUpperCase()}_BIN`]: "/bin/true" },
      isRoot: false,
      isolation: () => Promise.resolve("pid"),
    });
    const invalidIds = ["9bea4200-91ba-4502-9673-3190517385c0\n", "9bea4200-91ba-4502-9673-3190517385c0 --yolo"];
    for (const id of [...hostileValues, ...invalidIds]) {
      const invocation = createInvocation(
        "r1",
        { type: "autonomous" },
        { mode: "resume", prompt: "go on", executor_session_id: id },
      );
      expect(await executor.run(invocation, one.context)).toMatchObject({ reason: "session_not_found" });
    }
  }
  expect(starts).toEqual([]);
});

const recordings: Readonly<Record<ClientName, string>> = {
  claude: "claude-text.jsonl",
  codex: "codex-tool.jsonl",
  gemini: "gemini-text.jsonl",
};

/** Records its arguments and stdin, then replays real output of the client. */
const createRecorder = (client: ClientName): string => `#!${process.execPath}
const fs = require("node:fs");
const stdin = fs.readFileSync(0, "utf8");
const flag = process.argv.find((word) => word.startsWith("--append-system-prompt-file="));
const system = flag === undefined ? null : fs.readFileSync(flag.slice(flag.indexOf("=") + 1), "utf8");
fs.writeFileSync("recorded.json", JSON.stringify({ argv: process.argv.slice(2), stdin, system }));
process.stdout.write(fs.readFileSync(${JSON.stringify(join(root, "test", "fixtures", "clients", recordings[client]))}));
`;

interface Recorded {
  argv: string[];
  stdin: string;
  system: string | null;
}

async function readRecorded(harness: AgentHarness, client: ClientName, words: Words): Promise<Recorded> {
  const name = `agent-${++agents}`;
  const put = await harness.coordinator.call("PUT", `/agents/${name}`, {
    type: "autonomous",
    executor: client,
    model: words.model,
    system_prompt: words.system,
    permissions: { allowed_tools: [words.tool] },
    demands: { executor_type: client },
  });
  expect(put).toMatchObject({ status: 200 });
  const request = { agent_name: name, prompt: words.prompt, parameters: { text: words.prompt } };
  const run = await waitForRunEnd(harness.coordinator, (await submit(harness.coordinator, request)).run_id);
  const files = await harness.files(run);
  expect(Object.keys(files)).toContain("recorded.json");
  // Written by the script above.
  return JSON.parse(files["recorded.json"]!) as Recorded;
}
let agents = 0;

test("real processes of all three get the same arguments for every prompt, and the whole prompt on stdin", async () => {
  const harness = await startAgentHarness({
    script: [],
    profile: { slots: 6 },
    before(cwd) {
      for (const client of clientNames) writeFileSync(join(cwd, client), createRecorder(client), { mode: 0o755 });
    },
    env: Object.fromEntries(clientNames.map((client) => [`${client.toUpperCase()}_BIN`, `./${client}`])),
  });
  const sample = [...hostileValues.filter((_value, index) => index % 75 === 5), `${"long ".repeat(60_000)}--yolo`];
  await Promise.all(
    clientNames.map(async (client) => {
      const usual = await readRecorded(harness, client, harmlessWords);
      for (const value of sample) {
        // A command-line argument is limited to 128 KB.
        const shortValue = value.slice(0, 20_000);
        const changed = { ...harmlessWords, prompt: value, system: value, model: shortValue, tool: shortValue };
        const { argv, stdin, system } = await readRecorded(harness, client, changed);
        expect(argv.map(replacePaths)).toEqual(
          usual.argv
            .map(replacePaths)
            .map((word) =>
              word
                .replace(/^--model=opus$/, () => `--model=${shortValue}`)
                .replace(/^--allowedTools=Read$/, () => `--allowedTools=${shortValue}`),
            ),
        );
        // Surrounding whitespace is not part of the prompt.
        const submitted = value.trim();
        expect(stdin).toContain(submitted);
        expect(stdin.split(submitted).length).toBeGreaterThan(2);
        if (client === "claude") expect(system).toBe(value);
        else expect(stdin).toContain(`<instructions>\n${submitted}\n</instructions>`);
      }
    }),
  );
});

/** Replaces the per-run and per-session directories. */
function replacePaths(word: string): string {
  return word.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "ID");
}
