import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Page, parseBlocks, readPages, root } from "./page.ts";

it("type-checks every TypeScript snippet of every page against the library's own types", () => {
  expect(findTypeErrors(readPages())).toBe("");
});

it("reports a snippet that does not type-check, with its page and line", () => {
  const text = '# Page\n\n```ts\nimport { runAgent } from "drover";\nawait runAgent({ agent: 1 });\n```\n';
  expect(findTypeErrors([{ path: "page.md", text, blocks: parseBlocks(text) }])).toContain("page.md-3.ts");
});

/** Each snippet is a module of its own, in a project with the settings that `npm init` and `tsc --init` suggest. */
function findTypeErrors(pages: readonly Page[]): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-snippets-"));
  try {
    let count = 0;
    for (const { path, blocks } of pages)
      for (const { language, text, line } of blocks.filter(
        (block) => block.language === "ts" && block.norun === null,
      )) {
        const name = `${path.replaceAll("/", "-")}-${line}.${language}`;
        // `export {}` makes a snippet without imports a module, so that it may use await.
        writeFileSync(join(directory, name), `${text}\nexport {};\n`);
        count += 1;
      }
    if (count === 0) return "";
    linkModules(directory);
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const tsc = spawnSync(join(root, "node_modules", ".bin", "tsc"), ["-p", directory, "--pretty", "false"], {
      cwd: directory,
      encoding: "utf8",
    });
    return tsc.stdout;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const compilerOptions = {
  target: "es2023",
  module: "preserve",
  moduleResolution: "bundler",
  strict: true,
  skipLibCheck: true,
  noEmit: true,
  types: ["node"],
  // The sources of the library need these.
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  allowImportingTsExtensions: true,
  lib: ["es2023", "es2024.string", "dom"],
  paths: {
    drover: [join(root, "src", "index.ts")],
    "@ai-sdk/provider": [join(root, "node_modules", "@ai-sdk", "provider")],
  },
  // The provider of docs/writing-providers.md imports files that are next to it in src/llm.
  rootDirs: [".", join(root, "src", "llm")],
};

function linkModules(directory: string): void {
  const modules = join(directory, "node_modules");
  mkdirSync(join(modules, "@types"), { recursive: true });
  mkdirSync(join(modules, "@anthropic-ai"));
  symlinkSync(join(root, "node_modules", "@types", "node"), join(modules, "@types", "node"));
  symlinkSync(join(root, "node_modules", "zod"), join(modules, "zod"));
  const sdk = "@anthropic-ai/claude-agent-sdk";
  symlinkSync(join(root, "test", "clients", "node_modules", sdk), join(modules, sdk));
}
