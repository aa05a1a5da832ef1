import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = dirname(import.meta.dirname);

/** Lists the modules that an entry imports statically, directly or indirectly. */
async function listStaticImports(entry: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outdir: "unused",
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
  const modules = new Set<string>();
  const pending = [entry];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (modules.has(file)) continue;
    modules.add(file);
    for (const { path, kind } of metafile.inputs[file]?.imports ?? [])
      if (kind === "import-statement") pending.push(path);
  }
  return [...modules].sort();
}

test("a cold exec loads no library, only Drover's own code and Node's", async () => {
  const modules = await listStaticImports("src/cli/exec.ts");
  expect(modules).toContain("src/record/ops/finish-run.ts");
  expect(modules.filter((path) => !path.startsWith("src/") && !path.startsWith("node:"))).toEqual([]);
  // Only commands inside a run need these modules.
  expect(modules).not.toContain("src/execute/nested/nested-sink.ts");
  expect(modules).not.toContain("src/execute/nested/log-reader.ts");
  expect(modules.filter((path) => /^node:(?:http|crypto|perf_hooks|(?:fs|timers)\/promises)$/.test(path))).toEqual([]);
});

test("a cold exec measures time without `performance`, which makes Node load nine modules", async () => {
  const modules = await listStaticImports("src/cli/exec.ts");
  const sources = modules.filter((path) => path.startsWith("src/"));
  expect(sources).toContain("src/model/clock.ts");
  expect(sources.filter((path) => readFileSync(join(root, path), "utf8").includes("performance.now("))).toEqual([]);
});

test("a client of a running coordinator does not load the coordinator's code", async () => {
  for (const entry of ["src/cli/run.ts", "src/cli/sessions-resume.ts"]) {
    const modules = await listStaticImports(entry);
    expect(modules).toContain("src/wire/client.ts");
    expect(
      modules.filter((path) =>
        /^(?!src|node:)|^src\/(serve|dispatch|compose\/(open|create)|coordinator|runner)\b/.test(path),
      ),
    ).toEqual([]);
  }
});

test("a run without a coordinator loads neither the HTTP app nor the contracts of the other routes", async () => {
  const modules = await listStaticImports("src/cli/with-local-runner.ts");
  expect(modules).toContain("src/wire/submit-input.ts");
  expect(modules.filter((path) => /^(?!src|node:|zod$|yaml$)|^src\/(wire\/contracts|serve\/app)\b/.test(path))).toEqual(
    [],
  );
});

test("a command that reads the local record loads neither a coordinator nor a library", async () => {
  const modules = await listStaticImports("src/compose/record-client.ts");
  expect(modules).toContain("src/serve/routes/record.ts");
  expect(
    modules.filter((path) =>
      /^(?!src|node:)|^src\/(dispatch\/(?!control)|compose\/(?!record-client)|(define|submit|execute|coordinator|runner)\b)/.test(
        path,
      ),
    ),
  ).toEqual([]);
});

test("a coordinator and drover mcp do not load the MCP SDK before the first message", async () => {
  for (const entry of ["src/coordinator.ts", "src/cli/mcp.ts"]) {
    const modules = await listStaticImports(entry);
    expect(modules.filter((path) => path.includes("modelcontextprotocol"))).toEqual([]);
  }
});

test("a chat shows its prompt without loading a client, a coordinator or a library", async () => {
  for (const entry of ["src/cli/chat.ts", "src/cli/chat/terminal-chat.ts"]) {
    const modules = await listStaticImports(entry);
    expect(modules).toContain("src/cli/io.ts");
    expect(modules.filter((path) => !/^node:|^src\/(cli|model\/(errors|suggest|output))\b/.test(path))).toEqual([]);
    expect(modules).not.toContain("src/cli/with-local-runner.ts");
  }
});

test("an agent without MCP servers does not load the MCP client, and the Agent SDK executor loads no library at all", async () => {
  const sdkImports = await listStaticImports("src/execute/executors/claude-sdk/claude-sdk.ts");
  expect(sdkImports.filter((path) => !path.startsWith("src/") && !path.startsWith("node:"))).toEqual([]);
  const loop = await listStaticImports("src/execute/executors/loop/model-executor.ts");
  expect(loop.filter((path) => path.includes("modelcontextprotocol"))).toEqual([]);
});
