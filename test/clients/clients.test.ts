import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { execute } from "../../src/process/execute.ts";
import { keepAll, textOf } from "../fixtures/process/capture.ts";
import { type ModelServer, startModelServer } from "../model-server/server.ts";
import { type ClientName, clientNames, prepareClient } from "./clients.ts";

let server: ModelServer;
let base: string;
beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "drover-clients-"));
  for (const name of ["home", "work", "tmp"]) mkdirSync(join(base, name));
  server = await startModelServer([
    {
      when: "create file hello.txt with hi",
      turns: [
        { text: "I will.", tool: { name: "write_file", input: { path: "hello.txt", content: "hi" } } },
        { text: "It is there." },
      ],
    },
    { when: "say hello", turns: [{ text: "Hello from the script." }] },
    { when: "go on", turns: [{ text: "I went on." }] },
  ]);
});
afterEach(async () => {
  await server.stop();
  rmSync(base, { recursive: true, force: true });
});

/** The flags of a run that may edit files in its directory, with the prompt on stdin. */
const words: Readonly<Record<ClientName, (session?: string, fork?: boolean) => string[]>> = {
  claude: (session, fork) => [
    "-p",
    "--verbose",
    "--output-format=stream-json",
    "--permission-mode=acceptEdits",
    "--setting-sources=",
    ...(session ? ["--resume", session] : []),
    ...(fork ? ["--fork-session"] : []),
  ],
  codex: (session, fork) => [
    "exec",
    "--json",
    "--skip-git-repo-check",
    "--sandbox=workspace-write",
    ...(session ? [fork ? "fork" : "resume", session] : []),
    "-",
  ],
  gemini: (session) => [
    "--model=gemini-2.5-flash",
    "--output-format=stream-json",
    "--approval-mode=auto_edit",
    ...(session ? ["--resume", session] : []),
  ],
};

async function ask(name: ClientName, prompt: string, session?: string, fork?: boolean) {
  const { bin, env } = prepareClient(name, { home: join(base, "home"), url: server.url });
  const result = await execute(
    {
      executable: bin,
      arguments: words[name](session, fork),
      workingDirectory: join(base, "work"),
      environment: { PATH: process.env["PATH"] ?? "", TMPDIR: join(base, "tmp"), ...env },
      timeoutMs: 120_000,
    },
    {
      isolation: "auto",
      environment: { mode: "replace" },
      stdin: Buffer.from(prompt),
      capture: { ...keepAll, maxBytes: 8 << 20 },
    },
  );
  const lines = textOf(result.stdout)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  expect(result, `${textOf(result.stdout)}\n${textOf(result.stderr)}`).toMatchObject({ exitCode: 0, error: null });
  const [first] = lines;
  return { lines, session: String(first.session_id ?? first.thread_id) };
}

/** What the model was told last, without the client's own additions. */
const heard = (): string[] =>
  (server.requests.at(-1)?.messages ?? [])
    .filter(({ role, text }) => role !== "system" && text !== "")
    .map(({ role, text }) => `${role}: ${text.trim().split("\n").at(-1)}`)
    .filter((line) => !line.includes("</environment_context>"));

const first = ["user: say hello", "assistant: Hello from the script."];

it.each(clientNames)("%s answers with text, and writes a file by a tool of its own", async (name) => {
  const text = await ask(name, "say hello");
  expect(JSON.stringify(text.lines)).toContain(name === "gemini" ? '"status":"success"' : "Hello from the script.");
  await ask(name, "create file hello.txt with hi");
  expect(readFileSync(join(base, "work", "hello.txt"), "utf8").trim()).toBe("hi");
  expect(readdirSync(join(base, "work"))).toEqual(["hello.txt"]);
  expect(server.requests.at(-1)?.messages.at(-1)?.tool_results).toHaveLength(1);
  expect(server.requests.every(({ answered }) => answered !== "unknown")).toBe(true);
});

it.each(clientNames)("%s resumes with what was said before", async (name) => {
  const { session } = await ask(name, "say hello");
  expect((await ask(name, "go on", session)).session).toBe(session);
  expect(heard()).toEqual([...first, "user: go on"]);
});

it.each(["claude", "codex"] as const)("%s forks: the history is carried, the session is another", async (name) => {
  const { session } = await ask(name, "say hello");
  const forked = await ask(name, "go on", session, true);
  expect(forked.session).not.toBe(session);
  expect(heard()).toEqual([...first, "user: go on"]);
  await ask(name, "go on", session);
  expect(heard()).toEqual([...first, "user: go on"]);
});
