import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RequestError } from "../model/errors.ts";
import { fileToolsCommand } from "./file-tools.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-file-tools-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Returns the error that the command reports instead of calling or serving the tools. */
async function findError(positionals: string[], options: Record<string, string | true>): Promise<RequestError> {
  const input = { positionals, options, rest: null, extraOptions: [], env: {}, cwd: directory };
  const error = await fileToolsCommand.run(input).catch((thrown: unknown) => thrown);
  if (error instanceof RequestError) return error;
  throw new Error(`The command did not refuse the workspace: ${String(error)}`);
}

const faces: [face: string, args: string[], options: Record<string, string | true>][] = [
  ["one call", ['{"tool":"file.write","path":"a.txt","content":"x"}'], {}],
  ["--mcp", [], { mcp: true }],
  ["--http", [], { http: "0" }],
];

describe.each(faces)("a workspace for %s", (_face, args, options) => {
  const cases: [what: string, make: (path: string) => void, path: string, code: string, says: string][] = [
    ["that is missing", () => undefined, "ws", "DROVER-USE-003", "does not exist"],
    ["that is a file", (path) => writeFileSync(path, ""), "ws", "DROVER-USE-004", "is not a directory"],
    ["that is a pipe", (path) => execFileSync("mkfifo", [path]), "ws", "DROVER-USE-004", "is not a directory"],
    ["that is a link to a file", linkToFile, "ws", "DROVER-USE-004", "is not a directory"],
    ["inside a file", (path) => writeFileSync(join(path, ".."), ""), "file/ws", "DROVER-USE-004", "not a directory"],
    ["that is a link to itself", (path) => symlinkSync(path, path), "ws", "DROVER-USE-003", "loop"],
    ["with an empty path", () => undefined, "", "DROVER-USE-001", "empty"],
  ];

  it.each(cases)("%s is refused", async (_what, make, name, code, message) => {
    const path = name && join(directory, name);
    make(path);
    const before = readdirSync(directory);
    expect(await findError([path, ...args], options)).toMatchObject({
      code,
      field: "WORKSPACE",
      message: expect.stringContaining(message),
      next: expect.stringMatching(/directory|--help/),
    });
    expect(readdirSync(directory)).toEqual(before);
  });
});

function linkToFile(path: string): void {
  writeFileSync(`${path}.txt`, "");
  symlinkSync(`${path}.txt`, path);
}
