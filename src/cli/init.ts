import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { trustPath } from "../define/trust.ts";
import { HostError, RequestError } from "../model/errors.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { findDroverCommand } from "./drover-command.ts";

export const initCommand: CommandSpec = {
  name: "init",
  summary: "create a small working project with one procedural and one autonomous agent",
  placeholders: "[FOLDER]",
  arity: [0, 1],
  examples: [
    ["drover init", "in the current directory"],
    ["drover init my-agents && cd my-agents && drover run greet --name Ada", "in a new directory, with a first run"],
  ],
  options: {},
  run: init,
};

/** Writes all files or none, and never overwrites an existing file. */
async function init({ positionals, cwd, env }: CommandInput): Promise<number> {
  const directory = resolve(cwd, positionals[0] ?? ".");
  const existingFiles = files.filter(({ path }) => existsSync(join(directory, path)));
  if (existingFiles.length > 0)
    throw new RequestError({
      code: "DROVER-USE-012",
      field: "FOLDER",
      message: `${existingFiles.map(({ path }) => path).join(", ")} already ${existingFiles.length === 1 ? "exists" : "exist"} in ${directory}. Nothing was written.`,
      next: "Move them, or choose another directory: drover init my-agents",
    });
  const isNew = !existsSync(directory) || readdirSync(directory).length === 0;
  const existingNames = ["profiles", "agents"].filter((name) => existsSync(join(directory, name)));
  for (const { path, text, executable } of files) {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { flag: "wx" });
    if (executable) chmodSync(file, 0o755);
    write(2, `wrote ${relative(cwd, file)}\n`);
  }
  // In a directory that already had files, trust only what this command created.
  const createdNames = ["drover.yaml", "profiles", "agents"].filter((name) => !existingNames.includes(name));
  trustCreated(isNew ? [directory] : createdNames.map((name) => join(directory, name)), env);
  if (existingNames.length > 0)
    write(
      2,
      `${existingNames.join("/ and ")}/ already existed and is not trusted. Trust it with: ${findDroverCommand()} trust ${quoteForShell(directory)}\n`,
    );
  const { formatCommentedCommands } = await import("./help.ts");
  write(
    1,
    [
      "Try:",
      ...(directory === cwd ? [] : [`  cd ${quoteForShell(relative(cwd, directory))}`]),
      ...formatCommentedCommands([
        ["drover run greet --name Ada", "run a command with typed parameters"],
        [
          'drover run writer --prompt "write a haiku"',
          "run an agent; a script plays the model, so it needs no API key",
        ],
        [
          'drover agent-executor agents/model/writer.md . --prompt "write a haiku"',
          "run the same agent in this directory",
        ],
        ["drover agents check", "check your changes; lists each error with its file and line"],
        ["drover up", "start a coordinator and a runner"],
      ]),
      "",
    ].join("\n"),
  );
  return 0;
}

/** Trusts the new files. If that fails, prints a warning, because the project is still usable. */
function trustCreated(paths: readonly string[], env: CommandInput["env"]): void {
  try {
    for (const path of paths) trustPath(realpathSync.native(path), env);
  } catch (error) {
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
    write(2, `drover: warning: could not record the project as trusted: ${error.message} ${error.next ?? ""}\n`);
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
    text: `# Settings of this project. Every key has a default: docs/configuration.md lists them.
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
description: Greets a person and returns JSON.
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

You write short pieces of text to files, then say what you wrote.
`,
  },
  {
    path: "scripts/writer.yaml",
    text: `# What the "scripted" provider answers in each turn. To use a real model, name another provider in
# profiles/model.json (anthropic, openai, google, ollama) and set its API key.
turns:
  - text: I will write it to haiku.txt.
    tools:
      - name: file.write
        input: { path: haiku.txt, content: "A run leaves its trace.\\nEvery step is written down.\\nMorning: all is there.\\n" }
  - text: I wrote haiku.txt.
`,
  },
];
