import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = dirname(import.meta.dirname);

/** Everything an entry loads before it does anything: what it imports otherwise than when needed. */
async function loadedAtOnce(entry: string): Promise<string[]> {
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
  const loaded = new Set<string>();
  const waiting = [entry];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    for (const { path, kind } of metafile.inputs[file]?.imports ?? [])
      if (kind === "import-statement") waiting.push(path);
  }
  return [...loaded].sort();
}

test("a cold exec loads nothing but our own code and Node's: a library costs it more than the command", async () => {
  const loaded = await loadedAtOnce("src/cli/exec.ts");
  expect(loaded).toContain("src/record/ops/finish-run.ts");
  expect(loaded.filter((path) => !path.startsWith("src/") && !path.startsWith("node:"))).toEqual([]);
  // for commands inside a run only
  expect(loaded).not.toContain("src/execute/nested/nested-sink.ts");
  expect(loaded).not.toContain("src/execute/nested/log-reader.ts");
  expect(loaded.filter((path) => /^node:(?:http|crypto|perf_hooks|(?:fs|timers)\/promises)$/.test(path))).toEqual([]);
});

test("a cold exec measures time without `performance`, behind which Node loads nine modules", async () => {
  const loaded = await loadedAtOnce("src/cli/exec.ts");
  const own = loaded.filter((path) => path.startsWith("src/"));
  expect(own).toContain("src/model/clock.ts");
  expect(own.filter((path) => readFileSync(join(root, path), "utf8").includes("performance.now("))).toEqual([]);
});

test("whoever has a coordinator does not load one", async () => {
  for (const entry of ["src/cli/run.ts", "src/cli/sessions-resume.ts"]) {
    const loaded = await loadedAtOnce(entry);
    expect(loaded).toContain("src/wire/client.ts");
    expect(
      loaded.filter((path) =>
        /^(?!src|node:)|^src\/(serve|dispatch|compose\/(open|create)|coordinator|runner)\b/.test(path),
      ),
    ).toEqual([]);
  }
});

test("a run without a coordinator loads what runs it, and neither HTTP nor the contracts of the other routes", async () => {
  const loaded = await loadedAtOnce("src/cli/with-local-runner.ts");
  expect(loaded).toContain("src/wire/submit-input.ts");
  expect(loaded.filter((path) => /^(?!src|node:|zod$|yaml$)|^src\/(wire\/contracts|serve\/app)\b/.test(path))).toEqual(
    [],
  );
});

test("a command that reads the record of this place loads neither a coordinator nor a library", async () => {
  const loaded = await loadedAtOnce("src/compose/record-client.ts");
  expect(loaded).toContain("src/serve/routes/record.ts");
  expect(
    loaded.filter((path) =>
      /^(?!src|node:)|^src\/(dispatch\/(?!by-record)|compose\/(?!record-client)|(define|submit|execute|coordinator|runner)\b)/.test(
        path,
      ),
    ),
  ).toEqual([]);
});

test("the MCP SDK is loaded with the first message, by a coordinator and by drover mcp", async () => {
  for (const entry of ["src/coordinator.ts", "src/cli/mcp.ts"]) {
    const loaded = await loadedAtOnce(entry);
    expect(loaded.filter((path) => path.includes("modelcontextprotocol"))).toEqual([]);
  }
});

test("a chat shows its prompt before it loads a client, a coordinator or a library", async () => {
  for (const entry of ["src/cli/chat.ts", "src/cli/chat/terminal-chat.ts"]) {
    const loaded = await loadedAtOnce(entry);
    expect(loaded).toContain("src/cli/io.ts");
    expect(loaded.filter((path) => !/^node:|^src\/(cli|model\/(errors|suggest|output))\b/.test(path))).toEqual([]);
    expect(loaded).not.toContain("src/cli/with-local-runner.ts");
  }
});

test("an agent without MCP servers does not load the MCP client, nor on the Agent SDK any other library", async () => {
  const onSdk = await loadedAtOnce("src/execute/executors/claude-sdk/claude-sdk.ts");
  expect(onSdk.filter((path) => !path.startsWith("src/") && !path.startsWith("node:"))).toEqual([]);
  const loop = await loadedAtOnce("src/execute/executors/loop/model-executor.ts");
  expect(loop.filter((path) => path.includes("modelcontextprotocol"))).toEqual([]);
});
