import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const script = join(dirname(fileURLToPath(import.meta.url)), "check-imports.mjs");
let src: string;
beforeEach(() => {
  src = join(mkdtempSync(join(tmpdir(), "drover-imports-")), "src");
});
afterEach(() => rmSync(dirname(src), { recursive: true }));

function check(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(src, name)), { recursive: true });
    writeFileSync(join(src, name), text);
  }
  const { status, stderr } = spawnSync(process.execPath, [script, src], { encoding: "utf8" });
  return { status, stderr };
}

const clean = {
  "model/run.ts": "export type Run = string;",
  "process/start.ts": 'import type { Run } from "../model/run.ts"; export const x: Run = "";',
};

it("passes sources that follow the rules, and reports how many files it read", () => {
  expect(check(clean)).toEqual({ status: 0, stderr: "2 files read, 0 violations\n" });
});

it.each([
  [
    "an import of a directory that is not allowed",
    { "execute/a.ts": 'import { b } from "../record/b.ts"; b();', "record/b.ts": "export const b = () => 1;" },
    "execute/ may not import record/",
  ],
  [
    "a type-only import of a directory that is not allowed",
    {
      "execute/a.ts": 'import type { B } from "../record/b.ts"; export type A = B;',
      "record/b.ts": "export type B = 1;",
    },
    "execute/ may not import record/",
  ],
  [
    "a dynamic import of a directory that is not allowed",
    { "execute/a.ts": 'void import("../record/b.ts");', "record/b.ts": "export const b = 1;" },
    "execute/ may not import record/",
  ],
  [
    "a re-export from a directory that is not allowed",
    { "execute/a.ts": 'export { b } from "../record/b.ts";', "record/b.ts": "export const b = 1;" },
    "execute/ may not import record/",
  ],
  [
    "an import of a computed path",
    { "execute/a.ts": "export const load = (url: string) => import(url);" },
    "import(url) must have a literal path",
  ],
  [
    "a package that model/ may not import",
    { "model/a.ts": 'import { readFileSync } from "node:fs"; readFileSync("x");' },
    "model/ may not import node:fs",
  ],
  [
    "an import cycle",
    {
      "model/a.ts": 'import { b } from "./b.ts"; export const a = () => b;',
      "model/b.ts": 'import { a } from "./a.ts"; export const b = () => a;',
    },
    "import cycle",
  ],
  [
    "a directory without a rule",
    { "misc/a.ts": 'import { b } from "../model/b.ts"; b();', "model/b.ts": "export const b = () => 1;" },
    "has no rule",
  ],
  ["an empty source directory", {}, "no source files"],
])("fails on %s", (_name, files: Record<string, string>, message) => {
  mkdirSync(src, { recursive: true });
  const { status, stderr } = check(files);
  expect(status).toBe(1);
  expect(stderr).toContain(message);
});
