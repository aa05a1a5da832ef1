import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createDirectory, drover } from "./drover.ts";

const list = '{"tool":"file.list"}';

it.each([
  ["missing", [list], "DROVER-USE-003", "The workspace missing cannot be opened: it does not exist."],
  ["missing", ["--mcp"], "DROVER-USE-003", "The workspace missing cannot be opened: it does not exist."],
  ["missing", ["--http", "0"], "DROVER-USE-003", "The workspace missing cannot be opened: it does not exist."],
  ["missing", [], "DROVER-USE-001", "Pass one call as JSON, or --mcp, or --http PORT."],
  ["file", [list], "DROVER-USE-004", "file is not a directory"],
])("refuses the workspace %s with %j, with exit code 2 and no stack trace", async (name, args, code, message) => {
  const cwd = createDirectory();
  writeFileSync(join(cwd, "file"), "");
  const refused = await drover(["file-tools", name, ...args], { cwd });
  expect(refused).toMatchObject({ code: 2, signal: null, stdout: "" });
  const [first, ...rest] = refused.stderr.trimEnd().split("\n");
  expect(first).toMatch(/^drover: /);
  expect(first).toContain(message);
  expect(first).toContain(`[${code}]`);
  // Only what to do next follows.
  expect(rest).toEqual([expect.stringMatching(/directory|--help/)]);
});

it("answers each call about a file of 1 GB without reading all of it into memory", async () => {
  const cwd = createDirectory();
  const huge = join(cwd, "ws", "huge");
  mkdirSync(join(cwd, "ws"));
  writeFileSync(huge, "first\n");
  truncateSync(huge, 1024 ** 3);
  const report = 'process.on("exit", () => console.error(`peak: ${process.resourceUsage().maxRSS} KiB`));';
  writeFileSync(join(cwd, "report-memory.cjs"), report);
  const call = async (input: object) => {
    const { stdout, stderr } = await drover(["file-tools", "ws", JSON.stringify(input)], {
      cwd,
      env: { NODE_OPTIONS: `--require ${join(cwd, "report-memory.cjs")}` },
      // A process starts with the peak of its parent, and the shell's is small.
      commandPrefix: ["sh", "-c", '"$@"; exit $?', "sh"],
    });
    const [, peak] = /^peak: (\d+) KiB$/m.exec(stderr) ?? [];
    expect(Number(peak), stderr).toBeLessThan(512 * 1024);
    return JSON.parse(stdout);
  };
  const read = { tool: "file.read", path: "huge" };
  expect(await call({ ...read, limit: 1 })).toMatchObject({ ok: true, content: "first\n", size: 1024 ** 3 });
  expect(await call({ ...read, offset: 2 })).toMatchObject({ error: { code: "binary" } });
  // Looks for this line in the whole file.
  expect(await call({ ...read, offset: 1000 })).toMatchObject({ ok: true, content: "", lines: 0 });
  const patches = [{ find: "first", replace: "second" }];
  expect(await call({ tool: "file.patch", path: "huge", patches })).toMatchObject({
    error: { code: "too_large", message: expect.stringContaining("the limit for editing is 10485760") },
  });
  expect(await call({ tool: "file.list" })).toEqual({ ok: true, entries: [{ path: "huge", type: "file" }] });
  expect(await call({ tool: "file.search", pattern: "first" })).toEqual({ ok: true, matches: [] });
  const content = "small";
  expect(await call({ tool: "file.write", path: "huge", content })).toEqual({ ok: true, size: 5, created: false });
  expect(readFileSync(huge, "utf8")).toBe(content);
});
