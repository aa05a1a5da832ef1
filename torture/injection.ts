import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ListStyle, toArguments } from "../src/model/to-arguments.ts";
import { RequestError } from "../src/model/errors.ts";
import type { Run } from "../src/model/run.ts";
import { type ClientName, clientNames } from "../test/clients/clients.ts";
import { hostileValues } from "../test/e2e/agents/hostile-values.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, waitFor } from "./wait.ts";

const listStyles = ["comma", "repeat", "json"] as const;
/** Values that no command line can carry. They are refused before a run is created. */
const impossible = ["a\0b", "\0", "\ud800", "x\udfffy", "long".repeat(40_000)];

/**
 * S2: passes hostile values as parameters, prompts, models, tools and instructions through the database to every
 * executor's child. The child receives exactly the intended arguments.
 */
export async function injection({ values: max }: { values: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const values = hostileValues.filter((_, index) => index % Math.ceil(hostileValues.length / max) === 0);
    const misread: string[] = [];
    const refused = await testParameters(testbed, values, misread);
    tools.progress(`${values.length} values as parameters`);
    const promptCount = await testPrompts(testbed, values, tools, misread);
    return {
      seen: {
        values: values.length,
        executors: 1 + clientNames.length,
        runs: values.length * listStyles.length + promptCount,
        "refused before a run": refused,
        misread: misread.length,
      },
      broken: misread,
      late: [],
    };
  });
}

/** The procedural executor: real processes that record their arguments, separated by NUL. */
async function testParameters(testbed: Testbed, values: readonly string[], misread: string[]): Promise<number> {
  const seen = join(testbed.directory, "argv");
  const script = join(testbed.directory, "scripts", "words.sh");
  mkdirSync(seen);
  writeFileSync(script, `#!/bin/sh\n[ $# = 0 ] || printf '%s\\0' "$@" > "${seen}/$DROVER_RUN_ID"\n`);
  chmodSync(script, 0o755);
  await testbed.startRunner({ name: "words", slots: 8, tags: ["words"] });
  const demands = { tags: ["words"] };
  for (const list_style of listStyles)
    await testbed.client.agents.put(list_style, { type: "procedural", command: script, list_style, demands });
  let refused = 0;
  const cases = [...values, ...impossible].flatMap((value) => listStyles.map((style) => ({ value, style })));
  await forEachConcurrently(cases, 8, async ({ value, style }) => {
    const parameters = { text: value, list: [value, "x"], object: { [value]: value }, flag: true, off: false };
    const { words: args, possible } = getExpectedWords(parameters, style);
    const run = await submitAndWait(testbed, { agent_name: style, parameters });
    if (run === null) refused += 1;
    if ((run !== null) !== possible)
      misread.push(`${JSON.stringify(value.slice(0, 200))} as ${style} was ${run ? "taken" : "refused"}`);
    if (run === null) return;
    const file = join(seen, run.run_id);
    const got = existsSync(file) ? readFileSync(file, "utf8").split("\0").slice(0, -1) : [];
    if (JSON.stringify(got) !== JSON.stringify(args))
      misread.push(`${JSON.stringify(args).slice(0, 300)} arrived as ${JSON.stringify(got).slice(0, 300)}`);
  });
  return refused;
}

/** The arguments that the rule yields. Whatever the rule, a value must never become an option. */
function getExpectedWords(
  parameters: Record<string, unknown>,
  style: ListStyle,
): { words: string[]; possible: boolean } {
  const { arguments: args, faults } = toArguments(parameters, style);
  const options = args.filter((word) => word.startsWith("-") && !/^--(text|list|object|flag)(=|$)/s.test(word));
  return { words: args, possible: faults.length === 0 && options.length === 0 };
}

type Submission = Parameters<Testbed["client"]["submit"]>[0];

/** Submits and returns the ended run, or null if it was refused. */
async function submitAndWait({ client }: Testbed, request: Submission): Promise<Run | null> {
  const created = await client.submit(request).catch((error: unknown) => {
    if (error instanceof RequestError) return null;
    throw error;
  });
  if (created === null) return null;
  const ended = await waitFor(
    async () => {
      const run = await client.runs.get(created.run_id);
      return run.finished_at === null ? null : run;
    },
    120_000,
    20,
  );
  if (ended === null) throw new Error(`${created.run_id} did not end`);
  return ended;
}

interface Words {
  model: string;
  tool: string;
  prompt: string;
  system: string;
}

const harmlessWords: Words = { model: "opus", tool: "Read", prompt: "hello", system: "Be brief." };

/** Replaces the three clients with scripts that record how they were called. */
async function testPrompts(
  testbed: Testbed,
  values: readonly string[],
  tools: Tools,
  misread: string[],
): Promise<number> {
  let promptCount = 0;
  for (const client of clientNames) {
    const program = join(testbed.directory, "scripts", client);
    writeFileSync(program, createRecorder(client, tools.root), { mode: 0o755 });
    await testbed.startRunner({
      name: client,
      slots: 6,
      tags: [client],
      profile: { type: client, home: "session" },
      env: { [`${client.toUpperCase()}_BIN`]: program },
    });
    const asUsual = await runRecorded(testbed, client, "harmless", harmlessWords);
    const expected = (word: string, value: string): string =>
      replaceIds(word)
        .replace(/^--model=opus$/, () => `--model=${value}`)
        .replace(/^--allowedTools=Read$/, () => `--allowedTools=${value}`);
    await forEachConcurrently(values.entries(), 6, async ([index, value]) => {
      const args = { model: value, tool: value, prompt: value, system: value };
      const got = await runRecorded(testbed, client, `hostile-${index}`, args);
      promptCount += 1;
      // Blank instructions count as none.
      const blank = value.trim() === "";
      const expectedArgs = asUsual.argv
        .filter((word) => !blank || !word.startsWith(createSystemFlag))
        .map((word) => expected(word, value));
      if (JSON.stringify(got.argv.map(replaceIds)) !== JSON.stringify(expectedArgs))
        misread.push(
          `${client} got ${JSON.stringify(got.argv).slice(0, 500)} for ${JSON.stringify(value.slice(0, 100))}`,
        );
      // Surrounding whitespace is not part of the prompt.
      if (!got.stdin.includes(value.trim()))
        misread.push(`${client} was not asked ${JSON.stringify(value.slice(0, 200))}`);
      if (client === "claude" && got.system !== (blank ? null : value))
        misread.push(`${client} was not instructed ${JSON.stringify(value.slice(0, 200))}`);
      if (promptCount % 100 === 0)
        tools.progress(`${promptCount} of ${values.length * clientNames.length} values as prompts`);
    });
  }
  return promptCount;
}

interface Recorded {
  argv: string[];
  stdin: string;
  system: string | null;
}

async function runRecorded(testbed: Testbed, client: ClientName, name: string, args: Words): Promise<Recorded> {
  const agent_name = `${client}-${name}`;
  await testbed.client.agents.put(agent_name, {
    type: "autonomous",
    executor: client,
    model: escapeDollars(args.model),
    system_prompt: escapeDollars(args.system),
    permissions: { mode: "acceptEdits", allowed_tools: [args.tool], denied_tools: [] },
    demands: { executor_type: client, tags: [client] },
  });
  const run = await submitAndWait(testbed, { agent_name, prompt: args.prompt, parameters: { text: args.prompt } });
  if (run === null) throw new Error(`${JSON.stringify(args).slice(0, 200)} was refused`);
  const file = await testbed.client.runs.file(run.run_id, "recorded.json").catch((error: unknown) => {
    throw new Error(`${client} left nothing: ${run.status} ${run.error}`, { cause: error });
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.stream) chunks.push(chunk);
  // Written by the script below.
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as Recorded;
}

/** Escapes dollar signs, because model and instructions may refer to the runner's variables. */
function escapeDollars(text: string): string {
  return text.replaceAll(/\$+\{\w+\}/g, (name) => `$${name}`);
}

const recordings: Readonly<Record<ClientName, string>> = {
  claude: "claude-text.jsonl",
  codex: "codex-tool.jsonl",
  gemini: "gemini-text.jsonl",
};

const createSystemFlag = "--append-system-prompt-file=";

/** Records its arguments and stdin, then replays real output of the client. */
const createRecorder = (client: ClientName, root: string): string => `#!${process.execPath}
const fs = require("node:fs");
const stdin = fs.readFileSync(0, "utf8");
const flag = process.argv.find((word) => word.startsWith("${createSystemFlag}"));
const system = flag === undefined ? null : fs.readFileSync(flag.slice(flag.indexOf("=") + 1), "utf8");
fs.writeFileSync("recorded.json", JSON.stringify({ argv: process.argv.slice(2), stdin, system }));
process.stdout.write(fs.readFileSync(${JSON.stringify(join(root, "test", "fixtures", "clients", recordings[client]))}));
`;

/** Replaces the ids of per-run and per-session directories. */
function replaceIds(word: string): string {
  return word.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "ID");
}
