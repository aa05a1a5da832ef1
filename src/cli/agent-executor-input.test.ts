import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultConfig } from "../model/config.ts";
import type { Session } from "../model/session.ts";
import type { ApiClient } from "../wire/client.ts";
import { loadAgentFileWithProfile } from "./load-agent-file.ts";
import { checkWorkspace } from "./check-workspace.ts";
import { readSessionFile, writeSessionFile } from "./session-file.ts";
import { findResumableSession } from "./find-resumable-session.ts";
import { readStdinParameters } from "./stdin-parameters.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-spec-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const id = "01a1e5df-be17-724a-91e2-1f3c85a26623";

describe("parameters on stdin", () => {
  const read = (...chunks: (string | Buffer)[]) =>
    readStdinParameters(
      Readable.from(
        chunks.map((chunk) => Buffer.from(chunk)),
        { objectMode: false },
      ),
    );

  it("are read from one JSON object; empty input means no parameters", async () => {
    expect(await read('{"A": "ä', '", "b": [1]}\n')).toEqual({ A: "ä", b: [1] });
    for (const emptyText of ["", " \n"]) expect(await read(emptyText)).toEqual({});
  });

  it.each([
    ["text", "TASK=t.md", "DROVER-PAR-006", "not valid JSON"],
    ["truncated JSON", '{"A": "t', "DROVER-PAR-006", "not valid JSON"],
    ["two objects", "{}\n{}", "DROVER-PAR-006", "not valid JSON"],
    ["a list", '["t.md"]', "DROVER-PAR-006", "not a JSON object"],
    ["null", "null", "DROVER-PAR-006", "not a JSON object"],
    ["a number that would be altered", '{"id": 12345678901234567890}', "DROVER-PAR-005", "12345678901234567890"],
    ["text that is not UTF-8", Buffer.from('{"A": "\xe9"}', "latin1"), "DROVER-PAR-006", "not UTF-8"],
    ["more than 1 MB", `{"A": "${"x".repeat(1024 * 1024)}"}`, "DROVER-PAR-003", "larger than 1024 KB"],
  ])("refuses %s", async (_what, text, code, message) => {
    await expect(read(text)).rejects.toMatchObject({
      code,
      field: expect.stringMatching(/^stdin/),
      message: expect.stringContaining(message),
      next: expect.any(String),
    });
  });
});

describe("a workspace", () => {
  it("is the real path of a directory of this user", () => {
    mkdirSync(join(directory, "ws"));
    symlinkSync(join(directory, "ws"), join(directory, "link"));
    expect(checkWorkspace(join(directory, "link"))).toBe(join(directory, "ws"));
  });

  const cases: [what: string, make: (path: string) => void, code: string, says: string][] = [
    ["that is missing", () => undefined, "DROVER-USE-003", "does not exist"],
    ["that is a file", (path) => writeFileSync(path, ""), "DROVER-USE-004", "not a directory"],
    ["inside a file", (path) => writeFileSync(path.slice(0, -3), ""), "DROVER-USE-004", "not a directory"],
    ["that is a link to itself", (path) => symlinkSync(path, path), "DROVER-USE-011", "ELOOP"],
    ...(isRoot
      ? ([
          [
            "of another user",
            (path) => (mkdirSync(path), chownSync(path, 65534, 65534)),
            "DROVER-USE-011",
            "belongs to user 65534",
          ],
        ] as typeof cases)
      : ([
          [
            "that cannot be written",
            (path) => (mkdirSync(path), chmodSync(path, 0o555)),
            "DROVER-USE-011",
            "cannot write to",
          ],
        ] as typeof cases)),
  ];
  it.each(cases)("%s is rejected", (what, make, code, message) => {
    const path = join(directory, what === "inside a file" ? "file/ws" : "ws");
    make(path);
    expect(() => checkWorkspace(path)).toThrow(
      expect.objectContaining({
        code,
        field: "WORKSPACE",
        message: expect.stringContaining(message),
        next: expect.any(String),
      }),
    );
  });
});

describe("the file .session", () => {
  const getFile = () => join(directory, ".session");

  it("contains a session id and is replaced atomically", () => {
    expect(readSessionFile(directory)).toBeNull();
    for (const sessionId of [id.replace("0", "1"), id]) writeSessionFile(directory, sessionId);
    expect(readSessionFile(directory)).toBe(id);
    expect(readdirSync(directory)).toEqual([".session"]);
  });

  it("replaces a symbolic link instead of following it", () => {
    writeFileSync(join(directory, "other"), id);
    symlinkSync("other", getFile());
    expect(() => readSessionFile(directory)).toThrow(expect.objectContaining({ code: "DROVER-SUB-003" }));
    writeSessionFile(directory, id.replace("0", "1"));
    expect(readFileSync(join(directory, "other"), "utf8")).toBe(id);
    expect(readSessionFile(directory)).toBe(id.replace("0", "1"));
  });

  it.each<[string, () => void, string]>([
    ["a directory", () => mkdirSync(getFile()), "not a regular file"],
    ["a pipe", () => execFileSync("mkfifo", [getFile()]), "not a regular file"],
    ["empty", () => writeFileSync(getFile(), ""), "does not contain a session id"],
    [
      "an id with more text after it",
      () => writeFileSync(getFile(), `${id}\n${id}\n`),
      "does not contain a session id",
    ],
    ["a path", () => writeFileSync(getFile(), "../../etc/passwd"), "does not contain a session id"],
  ])("that is %s is rejected", (_what, make, message) => {
    make();
    expect(() => readSessionFile(directory)).toThrow(
      expect.objectContaining({ code: "DROVER-SUB-003", field: ".session", message: expect.stringContaining(message) }),
    );
  });
});

describe("the session of agent-executor", () => {
  const required = { agent: "dev", profile: "model", workspace: "/ws" };
  const createSession = (fields: Partial<Session>): Session => ({
    session_id: id,
    executor_session_id: "c1",
    agent_name: "dev",
    created_by: "me",
    hostname: "build-host",
    executor_profile: "model",
    place_id: null,
    portable: false,
    runner_id: "r1",
    runner_dir: "/ws",
    project_dir: "/ws",
    run_count: 1,
    created_at: "",
    last_used_at: "",
    forked_from: null,
    fork_at_turn: null,
    ...fields,
  });
  /** Looks the session up in a record that contains only a session with these fields. */
  const find = (fields: Partial<Session> | null, reference: { id: string; file?: string }) => {
    const sessions = {
      list: async () => ({ items: fields === null ? [] : [createSession(fields)] }),
      get: async () => createSession(fields ?? {}),
    };
    // The code under test uses only `sessions`.
    return findResumableSession({ sessions } as unknown as ApiClient, reference, required);
  };

  it("is resumed by its agent in its workspace", async () => {
    expect(await find({}, { id: id.slice(0, 8) })).toMatchObject({ session_id: id });
    expect(await find({}, { id, file: "/ws/.session" })).toMatchObject({ session_id: id });
  });

  it.each<[string, Partial<Session> | null, string]>([
    ["is unknown", null, "no such session|Unknown session"],
    ["is of another agent", { agent_name: "other" }, "to the agent other, not to dev"],
    ["is of another executor", { executor_profile: "claude" }, "with the profile claude"],
    ["is of another workspace", { project_dir: "/elsewhere" }, "works in /elsewhere, not in /ws"],
    ["has no workspace", { project_dir: null }, "works in its own directory"],
  ])("is refused if it %s, on the command line and in the file", async (_what, fields, message) => {
    for (const [reference, field] of [
      [{ id }, "SESSION"],
      [{ id, file: "/ws/.session" }, ".session"],
    ] as const)
      await expect(find(fields, reference)).rejects.toMatchObject({
        code: expect.stringMatching(/^DROVER-(?:SUB-003|USE-008)$/),
        field,
        message: expect.stringMatching(message),
        next: expect.any(String),
      });
  });

  it("is rejected on the command line and ignored in the file if it has no conversation", async () => {
    const withoutConversation = { executor_session_id: null };
    await expect(find(withoutConversation, { id })).rejects.toMatchObject({ code: "DROVER-SUB-003" });
    expect(await find(withoutConversation, { id, file: "/ws/.session" })).toBeNull();
  });
});

describe("the agent file of agent-executor", () => {
  const load = (text: string, options: { provider?: string; env?: Record<string, string>; profile?: object } = {}) => {
    writeFileSync(join(directory, "dev.md"), text);
    if (options.profile) {
      mkdirSync(join(directory, "profiles"));
      writeFileSync(
        join(directory, "profiles", "model.json"),
        JSON.stringify({ type: "model", config: options.profile }),
      );
    }
    const locations = { stateDirectory: directory, configFile: null, repository: null };
    const project = { locations, config: defaultConfig, trusted: true, ignoredKeys: [] };
    const env = { DROVER_TRUST: directory, ...options.env };
    return loadAgentFileWithProfile(join(directory, "dev.md"), options.provider, { env, cwd: directory }, project);
  };
  const createText = (fields: string) => `---\n${fields}\n---\n# Dev\nYou develop.\n`;

  it("loses the settings that would choose another machine, directory or model", async () => {
    const { agent, loaded } = await load(
      createText("provider: anthropic\nmodel: claude-x\ndemands: { hostname: other }\nworkspace: scratch"),
      {
        provider: "scripted",
        profile: { provider: "openai-compatible", base_url: "http://127.0.0.1:1/" },
      },
    );
    expect(agent).toMatchObject({ name: "dev", provider: "scripted", workspace: "in_place" });
    expect(agent.model).toBeUndefined();
    expect(agent.demands).toBeUndefined();
    expect(loaded.profile.config).toEqual({ provider: "openai-compatible" });
  });

  it.each<[string, string, Parameters<typeof load>[1], string, string]>([
    ["without a title", "text", {}, "DROVER-AGT-004", "dev.md:1: the title is missing"],
    ["with invalid YAML", createText("tags: [x"), {}, "DROVER-AGT-002", "dev.md:2"],
    ["of a procedural agent", createText("command: ls"), {}, "DROVER-AGT-004", "a command"],
    ["of another executor", createText("executor: claude"), {}, "DROVER-AGT-004", "claude"],
    ["with an unknown provider", createText("provider: opnai"), {}, "DROVER-LLM-001", "Did you mean openai?"],
    [
      "with an unknown --provider",
      createText("tags: [x]"),
      { provider: "scripte" },
      "DROVER-LLM-001",
      "Did you mean scripted?",
    ],
    ["without its key", createText("provider: openai"), {}, "DROVER-LLM-002", "OPENAI_API_KEY is not set"],
    [
      "with an invalid base URL",
      createText("provider: ollama"),
      { env: { OLLAMA_HOST: "http://" } },
      "DROVER-LLM-003",
      "OLLAMA_HOST",
    ],
    [
      "with an invalid base URL in the profile",
      createText("tags: [x]"),
      { profile: { provider: "ollama", base_url: "localhost" } },
      "DROVER-LLM-003",
      "base_url",
    ],
    ["whose script is missing", createText("provider: scripted\nscript: none.yaml"), {}, "DROVER-LLM-004", "none.yaml"],
  ])("%s is refused before anything runs", async (_what, text, options, code, message) => {
    await expect(load(text, options)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
      next: expect.any(String),
    });
  });
});
