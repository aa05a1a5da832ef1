import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolResponse, ToolContext } from "../model/tool.ts";
import { start } from "../process/start.ts";
import { callTool, createFileTools } from "./file-tools.ts";
import { openWorkspace } from "./workspace.ts";

const context: ToolContext = {
  signal: new AbortController().signal,
  start: async (command) => start(command, { environment: { mode: "replace" } }, new AbortController().signal),
};

/** Only root may create device nodes, and not in every container. */
const canCreateDevices = ((): boolean => {
  const directory = mkdtempSync(join(tmpdir(), "drover-device-"));
  try {
    return spawnSync("mknod", [join(directory, "null"), "c", "1", "3"]).status === 0;
  } finally {
    rmSync(directory, { recursive: true });
  }
})();

let outside: string;
let root: string;
let call: (call: unknown) => Promise<ToolResponse>;

beforeEach(async () => {
  outside = mkdtempSync(join(tmpdir(), "drover-tools-"));
  root = join(outside, "work");
  mkdirSync(root);
  const tools = createFileTools(await openWorkspace(root));
  call = (toolCall) => callTool(tools, toolCall, context);
});
afterEach(() => rmSync(outside, { recursive: true, force: true }));

const writeWorkspaceFile = (path: string, readWorkspaceFile: string | Uint8Array): void =>
  writeFileSync(join(root, path), readWorkspaceFile);
const readWorkspaceFile = (path: string): string => readFileSync(join(root, path), "utf8");

describe("the tools as a model sees them", () => {
  it("have the names and inputs of the published contract", async () => {
    const tools = createFileTools(await openWorkspace(root));
    expect(
      Object.fromEntries(
        tools.map(({ name, input_schema, effect }) => [
          name,
          [effect, Object.keys(input_schema["properties"] as object), input_schema["required"] ?? []],
        ]),
      ),
    ).toEqual({
      "file.read": ["read", ["path", "offset", "limit"], ["path"]],
      "file.write": ["edit", ["path", "content"], ["path", "content"]],
      "file.patch": ["edit", ["path", "patches"], ["path", "patches"]],
      "file.delete": ["edit", ["path"], ["path"]],
      "file.list": ["read", ["path", "pattern"], []],
      "file.search": ["read", ["pattern", "path", "glob", "caseSensitive", "contextLines", "maxResults"], ["pattern"]],
    });
  });

  it.each([
    [null, "invalid_input"],
    [[], "invalid_input"],
    [{ path: "a" }, "invalid_input"],
    [{ tool: "file.raed", path: "a" }, "unknown_tool"],
    [{ tool: "file.read" }, "invalid_input"],
    [{ tool: "file.read", path: 3 }, "invalid_input"],
    [{ tool: "file.read", path: "a", offset: 0 }, "invalid_input"],
    [{ tool: "file.read", path: "a", lines: 3 }, "invalid_input"],
    [{ tool: "file.read", path: "a\0b" }, "invalid_input"],
    [{ tool: "file.write", path: "a" }, "invalid_input"],
    [{ tool: "file.patch", path: "a", patches: [] }, "invalid_input"],
    [{ tool: "file.search", pattern: "(" }, "invalid_input"],
  ])("answer the invalid call %j with %s", async (toolCall, code) => {
    expect(await call(toolCall)).toMatchObject({ ok: false, error: { code } });
  });

  it("suggest the tool that was meant", async () => {
    expect(await call({ tool: "file.raed" })).toMatchObject({
      error: { message: expect.stringContaining("file.read?") },
    });
  });
});

describe("file.read", () => {
  it("returns the whole text and how many lines it has", async () => {
    writeWorkspaceFile("a.txt", "one\ntwo\nthrée");
    expect(await call({ tool: "file.read", path: "a.txt" })).toEqual({
      ok: true,
      content: "one\ntwo\nthrée",
      start_line: 1,
      lines: 3,
      size: 14,
    });
  });

  it("returns the requested lines and where to continue", async () => {
    writeWorkspaceFile("a.txt", "1\n2\n3\n4\n5\n");
    expect(await call({ tool: "file.read", path: "a.txt", offset: 2, limit: 2 })).toMatchObject({
      content: "2\n3\n",
      lines: 2,
      truncated: true,
      next_offset: 4,
    });
    expect(await call({ tool: "file.read", path: "a.txt", offset: 5, limit: 2 })).toEqual({
      ok: true,
      content: "5\n",
      start_line: 5,
      lines: 1,
      size: 10,
    });
    expect(await call({ tool: "file.read", path: "a.txt", offset: 9 })).toMatchObject({ content: "", lines: 0 });
  });

  it("pages through a file that is larger than one answer without losing a character", async () => {
    const line = `${"é".repeat(400)}\n`;
    const text = line.repeat(4000);
    writeWorkspaceFile("large.txt", text);
    let read = "";
    for (let offset = 1; ;) {
      const answer = await call({ tool: "file.read", path: "large.txt", offset });
      expect(answer.ok).toBe(true);
      const { content: part, next_offset } = answer as unknown as { content: string; next_offset?: number };
      read += part;
      if (next_offset === undefined) break;
      expect(next_offset).toBeGreaterThan(offset);
      offset = next_offset;
    }
    expect(read === text).toBe(true);
  });

  it("reads the beginning of a file of 1 GB without reading all of it", async () => {
    writeWorkspaceFile("huge", "first\n");
    truncateSync(join(root, "huge"), 1024 ** 3);
    expect(await call({ tool: "file.read", path: "huge", limit: 1 })).toMatchObject({ ok: true, content: "first\n" });
    expect(await call({ tool: "file.read", path: "huge", offset: 2 })).toMatchObject({ error: { code: "binary" } });
    const patches = [{ find: "first", replace: "second" }];
    expect(await call({ tool: "file.patch", path: "huge", patches })).toMatchObject({ error: { code: "too_large" } });
  });

  it("refuses a path that is not text, not a file or missing", async () => {
    writeWorkspaceFile("image", Buffer.from([0x89, 0x50, 0xff, 0x00]));
    writeWorkspaceFile("latin1", Buffer.from("caf\xe9", "latin1"));
    mkdirSync(join(root, "folder"));
    execFileSync("mkfifo", [join(root, "pipe")]);
    const code = async (path: string) => {
      const answer = await call({ tool: "file.read", path });
      return answer.ok ? "ok" : answer.error.code;
    };
    expect(await Promise.all(["image", "latin1", "folder", "pipe", "gone", "."].map(code))).toEqual([
      "binary",
      "binary",
      "not_a_file",
      "not_a_file",
      "not_found",
      "not_a_file",
    ]);
  });
});

describe("file.write", () => {
  it("creates missing directories and replaces an existing file, keeping its mode", async () => {
    expect(await call({ tool: "file.write", path: "a/b/c.sh", content: "one" })).toEqual({
      ok: true,
      size: 3,
      created: true,
    });
    chmodSync(join(root, "a/b/c.sh"), 0o755);
    expect(await call({ tool: "file.write", path: "a/b/c.sh", content: "two!" })).toEqual({
      ok: true,
      size: 4,
      created: false,
    });
    expect(readWorkspaceFile("a/b/c.sh")).toBe("two!");
    expect(statSync(join(root, "a/b/c.sh")).mode & 0o777).toBe(0o755);
    expect(readdirSync(join(root, "a/b"))).toEqual(["c.sh"]);
  });

  it("does not write to directories, pipes or git's own files", async () => {
    mkdirSync(join(root, ".git/hooks"), { recursive: true });
    mkdirSync(join(root, "folder"));
    execFileSync("mkfifo", [join(root, "pipe")]);
    const code = async (path: string) => {
      const answer = await call({ tool: "file.write", path, content: "x" });
      return answer.ok ? "ok" : answer.error.code;
    };
    expect(
      await Promise.all(["folder", "pipe", ".git/hooks/post-checkout", ".GIT/config", "new/", "."].map(code)),
    ).toEqual(["not_a_file", "not_a_file", "protected", "protected", "not_a_file", "not_a_file"]);
  });

  it("leaves another hard link to the file unchanged", async () => {
    writeFileSync(join(outside, "secret"), "outside");
    linkSync(join(outside, "secret"), join(root, "a"));
    expect(await call({ tool: "file.read", path: "a" })).toMatchObject({ ok: false, error: { code: "not_a_file" } });
    await call({ tool: "file.write", path: "a", content: "mine" });
    expect(readWorkspaceFile("a")).toBe("mine");
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("outside");
  });
});

describe("file.patch", () => {
  it("applies the patches in order, each to the result of the previous one", async () => {
    writeWorkspaceFile("a.txt", "one\ntwo\nthree\n");
    const patches = [
      { find: "two", replace: "2" },
      { find: "2\nthree", replace: "end" },
    ];
    expect(await call({ tool: "file.patch", path: "a.txt", patches })).toMatchObject({ ok: true, patches: 2 });
    expect(readWorkspaceFile("a.txt")).toBe("one\nend\n");
  });

  it("changes nothing if one patch does not match, and names the closest lines", async () => {
    writeWorkspaceFile("a.txt", "function add(a, b) {\n  return a + b;\n}\n");
    const patches = [
      { find: "return a + b", replace: "return b + a" },
      { find: "function add(a,b) {", replace: "" },
    ];
    const answer = await call({ tool: "file.patch", path: "a.txt", patches });
    expect(answer).toMatchObject({ ok: false, error: { code: "no_match" } });
    expect(JSON.stringify(answer)).toContain("1: function add(a, b) {");
    expect(JSON.stringify(answer)).toContain("patches[1]");
    expect(readWorkspaceFile("a.txt")).toContain("return a + b");
  });

  it("refuses an ambiguous match, and accepts startLine to choose one", async () => {
    writeWorkspaceFile("a.txt", "x = 1\nx = 1\nx = 1\n");
    const patch = { find: "x = 1", replace: "x = 2" };
    expect(await call({ tool: "file.patch", path: "a.txt", patches: [patch] })).toMatchObject({
      error: { code: "ambiguous_match", message: expect.stringContaining("lines 1 and 2") },
    });
    expect(await call({ tool: "file.patch", path: "a.txt", patches: [{ ...patch, startLine: 2 }] })).toMatchObject({
      ok: true,
    });
    expect(readWorkspaceFile("a.txt")).toBe("x = 1\nx = 2\nx = 1\n");
    expect(await call({ tool: "file.patch", path: "a.txt", patches: [{ ...patch, startLine: 9 }] })).toMatchObject({
      error: { code: "no_match" },
    });
  });

  it("keeps Windows line endings", async () => {
    writeWorkspaceFile("a.txt", "one\r\ntwo\r\nthree\r\n");
    await call({ tool: "file.patch", path: "a.txt", patches: [{ find: "one\ntwo", replace: "1\n2" }] });
    expect(readWorkspaceFile("a.txt")).toBe("1\r\n2\r\nthree\r\n");
  });
});

describe("file.delete", () => {
  it("deletes a file or a link, but never a directory", async () => {
    writeWorkspaceFile("a", "");
    mkdirSync(join(root, "folder"));
    symlinkSync(join(outside, "secret"), join(root, "link"));
    writeFileSync(join(outside, "secret"), "");
    expect(await call({ tool: "file.delete", path: "a" })).toEqual({ ok: true, deleted: true });
    expect(await call({ tool: "file.delete", path: "link" })).toEqual({ ok: true, deleted: true });
    expect(await call({ tool: "file.delete", path: "folder" })).toMatchObject({ error: { code: "not_a_file" } });
    expect(await call({ tool: "file.delete", path: "a" })).toMatchObject({ error: { code: "not_found" } });
    expect(readdirSync(root)).toEqual(["folder"]);
    expect(existsSync(join(outside, "secret"))).toBe(true);
  });
});

describe("file.list", () => {
  it("lists the direct entries of a directory, or with a pattern the matching files below it", async () => {
    mkdirSync(join(root, "src/deep"), { recursive: true });
    mkdirSync(join(root, "node_modules/x"), { recursive: true });
    for (const path of ["a.ts", "src/b.ts", "src/deep/c.ts", "src/d.md", "node_modules/x/e.ts"])
      writeWorkspaceFile(path, "");
    expect(await call({ tool: "file.list" })).toEqual({
      ok: true,
      entries: [
        { path: "a.ts", type: "file" },
        { path: "node_modules", type: "folder" },
        { path: "src", type: "folder" },
      ],
    });
    const paths = async (input: object) =>
      ((await call({ tool: "file.list", ...input })) as { entries?: { path: string }[] }).entries?.map(
        ({ path }) => path,
      );
    expect(await paths({ pattern: "**/*.ts" })).toEqual(["a.ts", "src/b.ts", "src/deep/c.ts"]);
    expect(await paths({ path: "src", pattern: "*.md" })).toEqual(["d.md"]);
    expect(await paths({ pattern: "node_modules/**/*.ts" })).toEqual(["node_modules/x/e.ts"]);
    expect(await call({ tool: "file.list", path: "a.ts" })).toMatchObject({ error: { code: "not_a_folder" } });
  });
});

describe("file.search", () => {
  it("finds lines with their context, in file order", async () => {
    mkdirSync(join(root, "src"));
    writeWorkspaceFile("src/a.ts", "one\nneedle 1\nthree\nNeedle 2\n");
    writeWorkspaceFile("b.md", "needle\r\n");
    expect(await call({ tool: "file.search", pattern: "needle \\d", contextLines: 1 })).toEqual({
      ok: true,
      matches: [{ path: "src/a.ts", line: 2, text: "needle 1", before: ["one"], after: ["three"] }],
    });
    const searchResult = await call({ tool: "file.search", pattern: "needle", caseSensitive: false, glob: "*.ts" });
    expect(searchResult).toMatchObject({ matches: [{ line: 2 }, { line: 4 }] });
    expect(await call({ tool: "file.search", pattern: "needle", path: "src" })).toMatchObject({
      matches: [{ line: 2 }],
    });
    expect(await call({ tool: "file.search", pattern: "needle", glob: "*.md" })).toMatchObject({
      matches: [{ path: "b.md", text: "needle" }],
    });
    expect(await call({ tool: "file.search", pattern: "nowhere" })).toEqual({ ok: true, matches: [] });
    expect(await call({ tool: "file.search", pattern: "needle", path: "b.md" })).toMatchObject({
      error: { code: "not_a_folder", message: expect.stringContaining("set glob") },
    });
  });

  it("stops at maxResults and reports that there are more", async () => {
    writeWorkspaceFile("a.txt", "x\n".repeat(1000));
    const answer = await call({ tool: "file.search", pattern: "x", maxResults: 3 });
    expect(answer).toMatchObject({ ok: true, truncated: true });
    expect((answer as { matches?: unknown[] }).matches).toHaveLength(3);
  });

  it("treats a pattern that looks like an option as a pattern", async () => {
    writeWorkspaceFile("a.txt", "--files\n--pre=sh\n");
    expect(await call({ tool: "file.search", pattern: "--pre=sh" })).toMatchObject({ matches: [{ line: 2 }] });
    expect(await call({ tool: "file.search", pattern: "--files", path: "--pre=sh" })).toMatchObject({
      error: { code: "not_found" },
    });
  });
});

describe("special and huge files", () => {
  const patches = [{ find: "x", replace: "y" }];
  /** Returns for each tool except delete what it answers for this path: its error code, or "ok". */
  const callEach = async (path: string): Promise<Record<string, string>> => {
    const calls = [
      { tool: "file.read" },
      { tool: "file.write", content: "x" },
      { tool: "file.patch", patches },
      { tool: "file.list" },
      { tool: "file.search", pattern: "x" },
    ];
    const codes: Record<string, string> = {};
    for (const toolCall of calls) {
      const answer = await call({ ...toolCall, path });
      codes[toolCall.tool] = answer.ok ? "ok" : answer.error.code;
    }
    return codes;
  };
  const refused = {
    "file.read": "not_a_file",
    "file.write": "not_a_file",
    "file.patch": "not_a_file",
    "file.list": "not_a_folder",
    "file.search": "not_a_folder",
  };

  it("tools refuse to open a pipe, but list and delete it", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    writeWorkspaceFile("a.txt", "x\n");
    expect(await callEach("pipe")).toEqual(refused);
    const entries = [
      { path: "a.txt", type: "file" },
      { path: "pipe", type: "other" },
    ];
    expect(await call({ tool: "file.list" })).toEqual({ ok: true, entries });
    expect(await call({ tool: "file.list", pattern: "**/*" })).toEqual({ ok: true, entries });
    expect(await call({ tool: "file.search", pattern: "x" })).toEqual({
      ok: true,
      matches: [{ path: "a.txt", line: 1, text: "x" }],
    });
    expect(await call({ tool: "file.search", pattern: "x", glob: "pipe" })).toEqual({ ok: true, matches: [] });
    expect(await call({ tool: "file.delete", path: "pipe" })).toEqual({ ok: true, deleted: true });
    expect(readdirSync(root)).toEqual(["a.txt"]);
  });

  it("tools refuse to open a device, but list and delete it", async ({ skip }) => {
    skip(!canCreateDevices, "mknod fails here: only root may create device nodes, and not in every container");
    // Reading /dev/zero never ends, and writing to /dev/full always fails.
    for (const [name, minor] of [
      ["zero", "5"],
      ["full", "7"],
    ] as const)
      execFileSync("mknod", [join(root, name), "c", "1", minor]);
    writeWorkspaceFile("a.txt", "x\n");
    for (const name of ["zero", "full"]) expect(await callEach(name)).toEqual(refused);
    expect(await call({ tool: "file.list" })).toMatchObject({
      entries: [{ path: "a.txt" }, { path: "full", type: "other" }, { path: "zero", type: "other" }],
    });
    expect(await call({ tool: "file.search", pattern: "x" })).toMatchObject({ matches: [{ path: "a.txt" }] });
    expect(await call({ tool: "file.search", pattern: "x", glob: "zero" })).toEqual({ ok: true, matches: [] });
    expect(statSync(join(root, "zero")).isCharacterDevice()).toBe(true);
    for (const name of ["zero", "full"])
      expect(await call({ tool: "file.delete", path: name })).toEqual({ ok: true, deleted: true });
    expect(readdirSync(root)).toEqual(["a.txt"]);
  });

  it("a file of 1 GB is listed, replaced and deleted, and search skips it as its description says", async () => {
    writeWorkspaceFile("huge", "x\n");
    truncateSync(join(root, "huge"), 1024 ** 3);
    writeWorkspaceFile("a.txt", "x\n");
    expect(await call({ tool: "file.list" })).toMatchObject({ entries: [{ path: "a.txt" }, { path: "huge" }] });
    expect(await call({ tool: "file.list", path: "huge" })).toMatchObject({ error: { code: "not_a_folder" } });
    const match = { path: "a.txt", line: 1, text: "x" };
    expect(await call({ tool: "file.search", pattern: "x" })).toEqual({ ok: true, matches: [match] });
    expect(await call({ tool: "file.search", pattern: "x", glob: "huge" })).toEqual({ ok: true, matches: [] });
    const { description } = createFileTools(await openWorkspace(root)).find(({ name }) => name === "file.search")!;
    expect(description).toContain("Skips files above 10 MiB");
    expect(await call({ tool: "file.write", path: "huge", content: "small" })).toEqual({
      ok: true,
      size: 5,
      created: false,
    });
    expect(readdirSync(root)).toEqual(["a.txt", "huge"]);
    expect(readWorkspaceFile("huge")).toBe("small");
    truncateSync(join(root, "huge"), 1024 ** 3);
    expect(await call({ tool: "file.delete", path: "huge" })).toEqual({ ok: true, deleted: true });
  });
});

describe("links", () => {
  it("are followed inside the workspace and refused outside it", async () => {
    mkdirSync(join(root, "real"));
    writeWorkspaceFile("real/a.txt", "inside");
    symlinkSync("real", join(root, "there"));
    symlinkSync("../../work/real/a.txt", join(root, "real/round"));
    symlinkSync(join(root, "real/a.txt"), join(root, "absolute"));
    symlinkSync("circle", join(root, "circle"));
    symlinkSync("..", join(root, "up"));
    writeFileSync(join(outside, "secret"), "outside");
    const read = async (path: string) => {
      const answer = await call({ tool: "file.read", path });
      return answer.ok ? answer["content"] : answer.error.code;
    };
    expect(await read("there/a.txt")).toBe("inside");
    expect(await read("absolute")).toBe("inside");
    expect(await read(join(root, "real/a.txt"))).toBe("inside");
    expect(await read("there/../real/a.txt")).toBe("inside");
    expect(await read("circle")).toBe("outside_workspace");
    symlinkSync("/dev/zero", join(root, "device"));
    expect(await read("device")).toBe("outside_workspace");
    expect(await read("up/secret")).toBe("outside_workspace");
    expect(await read("real/round")).toBe("outside_workspace");
    await call({ tool: "file.write", path: "there/new", content: "x" });
    expect(readWorkspaceFile("real/new")).toBe("x");
  });
});
