import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { trustPath } from "../define/trust.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";

export const initCommand: CommandSpec = {
  name: "init",
  summary: "write a small project that works: a command and an agent on a model, each with what it needs",
  takes: "[FOLDER]",
  arity: [0, 1],
  examples: [
    ["drover init", "in this folder"],
    ["drover init my-agents && cd my-agents && drover run greet --name Ada", "and a first run"],
  ],
  options: {},
  run: init,
};

/** Writes all files or none: what is there is never overwritten. */
async function init({ positionals, cwd, env }: CommandInput): Promise<number> {
  const folder = resolve(cwd, positionals[0] ?? ".");
  const taken = files.filter(({ path }) => existsSync(join(folder, path)));
  if (taken.length > 0)
    throw new RequestError({
      code: "DROVER-USE-012",
      field: "FOLDER",
      message: `There is already ${taken.map(({ path }) => path).join(", ")} in ${folder}. Nothing was written.`,
      next: "Move it away, or name another folder: drover init my-agents",
    });
  const isNew = !existsSync(folder) || readdirSync(folder).length === 0;
  const foreign = ["profiles", "agents"].filter((name) => existsSync(join(folder, name)));
  for (const { path, text, executable } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
    if (executable) chmodSync(file, 0o755);
    write(2, `wrote ${relative(cwd, file)}\n`);
  }
  // in a folder that has more, only what was written now
  const own = ["drover.yaml", "profiles", "agents"].filter((name) => !foreign.includes(name));
  trustOwn(isNew ? [folder] : own.map((name) => join(folder, name)), env);
  if (foreign.length > 0)
    write(
      2,
      `${foreign.join("/ and ")}/ had files of somebody before. Trust all with: drover trust ${shellQuote(folder)}\n`,
    );
  const { columns } = await import("./help.ts");
  write(
    1,
    [
      "Try:",
      ...(folder === cwd ? [] : [`  cd ${shellQuote(relative(cwd, folder))}`]),
      ...columns([
        ["drover run greet --name Ada", "# a command with typed parameters"],
        ['drover run writer --prompt "write a haiku"', "# an agent; a script speaks for its model, so it needs no key"],
        ['drover agent-executor agents/model/writer.md . --prompt "write a haiku"', "# the same agent, in this folder"],
        ["drover agents check", "# after a change: every fault with its file and line"],
        ["drover up", "# serve both"],
      ]),
      "",
    ].join("\n"),
  );
  return 0;
}

/** A project that works is worth having, also where nothing can be recorded. */
function trustOwn(paths: readonly string[], env: CommandInput["env"]): void {
  try {
    for (const path of paths) trustPath(realpathSync.native(path), env);
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    write(2, `drover: warning: it is not recorded as trusted: ${error.message} ${error.next ?? ""}\n`);
  }
}

interface ProjectFile {
  path: string;
  text: string;
  executable?: true;
}

const files: readonly ProjectFile[] = [
  {
    path: "drover.yaml",
    text: `# Settings of this project. Every key has a default: docs/commands.md lists them.
execution:
  default_timeout_seconds: 300
`,
  },
  {
    path: "profiles/commands.json",
    text: `${JSON.stringify({ type: "procedural", agents_dir: "./agents/commands" }, null, 2)}\n`,
  },
  {
    path: "agents/commands/greet.yaml",
    text: `name: greet
description: Greets somebody and returns JSON.
command: scripts/greet
parameters_schema:
  type: object
  properties:
    name: { type: string, minLength: 1 }
    loud: { type: boolean }
  required: [name]
  additionalProperties: false
`,
  },
  {
    path: "scripts/greet",
    executable: true,
    text: `#!/usr/bin/env node
// Gets its parameters as --name Ada [--loud]. JSON on stdout becomes the run's result_data.
const words = process.argv.slice(2);
const name = words[words.indexOf("--name") + 1];
const greeting = \`Hello, \${name}!\`;
console.log(JSON.stringify({ greeting: words.includes("--loud") ? greeting.toUpperCase() : greeting }));
`,
  },
  {
    path: "profiles/model.json",
    text: `${JSON.stringify({ type: "model", agents_dir: "./agents/model", config: { provider: "scripted", script: "scripts/writer.yaml" } }, null, 2)}\n`,
  },
  {
    path: "agents/model/writer.md",
    text: `# Writer

You write short texts into files and say what you wrote.
`,
  },
  {
    path: "scripts/writer.yaml",
    text: `# What the "scripted" provider says, turn by turn. Name a real provider in profiles/model.json
# (anthropic, openai, google, ollama) and set its key to talk to a model instead.
turns:
  - text: I will write it into haiku.txt.
    tools:
      - name: file.write
        input: { path: haiku.txt, content: "A run leaves its trace.\\nEvery step is written down.\\nMorning: all is there.\\n" }
  - text: haiku.txt is there.
`,
  },
];
