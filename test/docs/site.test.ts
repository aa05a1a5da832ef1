import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readPages, root } from "./page.ts";

const out = mkdtempSync(join(tmpdir(), "drover-site-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

let files: string[] = [];
beforeAll(() => {
  // Vitest's variables would make VitePress build for tests.
  const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };
  const built = spawnSync(process.execPath, ["scripts/docs.mjs", out], { cwd: root, env, encoding: "utf8" });
  expect(built.status, built.stderr).toBe(0);
  files = readdirSync(out, { recursive: true, encoding: "utf8" });
});

it("builds one page for each file in docs/", () => {
  const expected = readPages()
    .filter(({ path }) => path.startsWith("docs/"))
    .map(({ path }) => path.slice("docs/".length).replace(/\.md$/, ".html"));
  expect(files.filter((file) => file.endsWith(".html") && file !== "404.html").sort()).toEqual(expected.sort());
});

it("leads to every page from the sidebar", () => {
  const index = readFileSync(join(out, "index.html"), "utf8");
  const linked = new Set(
    [...index.matchAll(/href="\/([^"#]+(?:\.html|\/))"/g)].map(([, page = ""]) => page.replace(/\/$/, "/index.html")),
  );
  const pages = files.filter((file) => file.endsWith(".html") && !["index.html", "404.html"].includes(file));
  expect(pages.filter((page) => !linked.has(page))).toEqual([]);
});

it("loads nothing from other hosts", () => {
  const loads =
    /(?:<(?:script|img|iframe|source)\b[^>]*\bsrc|<link\b[^>]*\bhref)="(?:https?:)?\/\/[^"]*"|url\(["']?(?:https?:)?\/\//g;
  const externalUrls = files
    .filter((file) => /\.(?:html|css)$/.test(file))
    .flatMap((file) => [...readFileSync(join(out, file), "utf8").matchAll(loads)].map(([load]) => `${file}: ${load}`));
  expect(externalUrls).toEqual([]);
});

it("has an index for local search", () => {
  expect(files.some((file) => /localSearchIndex.*\.js$/.test(file))).toBe(true);
});
