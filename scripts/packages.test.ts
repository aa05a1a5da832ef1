import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = dirname(import.meta.dirname);

interface LockedPackage {
  dev?: true;
  devOptional?: true;
  os?: string[];
  cpu?: string[];
}

/** Lists the packages that `npm start` installs: all in the lockfile except tools and other platforms' binaries. */
function listPackages(directory = root): { path: string; name: string; isBinary: boolean }[] {
  const lock = JSON.parse(readFileSync(join(directory, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== "" && !dev && !devOptional)
    .filter(([, { os, cpu }]) => os?.includes(process.platform) !== false && cpu?.includes(process.arch) !== false)
    .map(([path]) => ({
      path,
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      isBinary: path.endsWith(`${process.platform}-${process.arch}`),
    }));
}

/** Everyone who tries Drover downloads these packages, so adding one needs a reason. */
const expectedPackages = [
  "@ai-sdk/anthropic",
  "@ai-sdk/google",
  "@ai-sdk/openai",
  "@ai-sdk/openai-compatible",
  "@ai-sdk/provider",
  "@ai-sdk/provider-utils",
  "@hono/node-server",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/core",
  "@modelcontextprotocol/server",
  "@photostructure/sqlite",
  "@standard-schema/spec",
  "@vscode/ripgrep",
  "ajv",
  "ajv-formats",
  "croner",
  "cross-spawn",
  "esbuild",
  "eventsource",
  "eventsource-parser",
  "fast-deep-equal",
  "fast-uri",
  "hono",
  "isexe",
  "jose",
  "json-schema",
  "json-schema-traverse",
  "node-addon-api",
  "node-gyp-build",
  "path-key",
  "pg",
  "pg-cloudflare",
  "pg-connection-string",
  "pg-int8",
  "pg-pool",
  "pg-protocol",
  "pg-types",
  "pgpass",
  "pkce-challenge",
  "postgres-array",
  "postgres-bytea",
  "postgres-date",
  "postgres-interval",
  "require-from-string",
  "shebang-command",
  "shebang-regex",
  "split2",
  "undici",
  "which",
  "xtend",
  "yaml",
  "zod",
];

const maxMegabytes = 100;

it("npm start installs only these packages, and stays below 100 MB", () => {
  const packages = listPackages();
  const names = new Set(packages.filter(({ isBinary }) => !isBinary).map(({ name }) => name));
  expect([...names].sort()).toEqual(expectedPackages);
  // Each of these packages has one binary for this platform.
  const binaries = packages.filter(({ isBinary }) => isBinary).map(({ name }) => name.replace(/[^/]*$/, ""));
  expect(binaries.sort()).toEqual(["@esbuild/", "@vscode/"]);
  const counted = new Set<number>();
  const megabytes = packages.reduce((sum, { path }) => sum + countBytes(join(root, path), counted), 0) / 1e6;
  expect(megabytes).toBeGreaterThan(10);
  expect(megabytes).toBeLessThan(maxMegabytes);
});

/** Packages that are needed only to build the dashboard. The published package contains the result and depends on none of them. */
const expectedWebPackages = [
  "@fontsource-variable/geist",
  "@fontsource-variable/geist-mono",
  "@tanstack/react-query",
  "@tanstack/react-router",
  "@tanstack/react-virtual",
  "@types/react",
  "@types/react-dom",
  "@vitejs/plugin-react",
  "cmdk",
  "get-nonce",
  "radix-ui",
  "react",
  "react-dom",
  "react-markdown",
  "remark-gfm",
  "remend",
  "vite",
];

it("npm start builds the dashboard from these packages, and the package itself depends on none of them", () => {
  const read = (file: string) =>
    JSON.parse(readFileSync(join(root, file), "utf8")) as { dependencies: Record<string, string> };
  const { dependencies } = read("web/package.json");
  expect(Object.keys(dependencies)).toEqual(expectedWebPackages);
  for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(Object.keys(read("package.json").dependencies).filter((name) => name in dependencies)).toEqual([]);
  const web = join(root, "web");
  const megabytes = listPackages(web)
    .filter(({ path }) => existsSync(join(web, path)))
    .reduce((sum, { path }) => sum + countBytes(join(web, path)), 0);
  expect(megabytes / 1e6).toBeLessThan(maxMegabytes);
});

it("only the documentation site needs VitePress, and npm start does not install it", () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, "docs/.vitepress/package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  expect(Object.keys(dependencies)).toEqual([
    "@fontsource-variable/geist",
    "@fontsource-variable/geist-mono",
    "vitepress",
    "vue",
  ]);
  for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(readFileSync(join(root, "scripts/start.mjs"), "utf8")).not.toContain("docs");
});

it("the packages of claude-code and bedrock are optional peer dependencies", () => {
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    peerDependencies: Record<string, string>;
    peerDependenciesMeta: Record<string, { optional?: boolean }>;
  };
  const clientPackages = JSON.parse(readFileSync(join(root, "test/clients/package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  for (const [name, version] of Object.entries(peerDependencies)) {
    expect(peerDependenciesMeta[name]).toEqual({ optional: true });
    // The contract suite tests exactly this version.
    expect(clientPackages.dependencies[name]).toBe(version);
  }
  expect(Object.keys(peerDependencies)).toEqual(["@ai-sdk/amazon-bedrock", "@anthropic-ai/claude-agent-sdk"]);
});

/**
 * Counts the bytes of a package. Excludes nested packages, which are counted separately. Counts a file with several links once, because esbuild links
 * its program into a second package.
 */
function countBytes(directory: string, counted = new Set<number>()): number {
  return readdirSync(directory, { withFileTypes: true })
    .filter(({ name }) => name !== "node_modules")
    .reduce((sum, entry) => {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) return sum + countBytes(path, counted);
      const { ino, size } = lstatSync(path);
      if (counted.has(ino)) return sum;
      counted.add(ino);
      return sum + size;
    }, 0);
}
