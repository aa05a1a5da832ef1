import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bin, drover, createDirectory } from "./drover.ts";
import { encodeFiles, writeScribe } from "./scribe.ts";
import { startRunner, startCoordinator } from "./coordinator-process.ts";

const binary = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0xff, 0xfe, 1, 2, 3]);
const sampleFiles = { "hello.txt": "hi\n", "out/ünïcode name.md": "# ok\n", "out/chart.png": binary };
const hash = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Creates a run with files, without a permanent coordinator. */
async function createRunWithFiles(files: Record<string, string | Uint8Array> = sampleFiles) {
  const cwd = createDirectory();
  writeScribe(cwd);
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const run = (...args: string[]) => drover(args, { cwd, env });
  const runResult = await run("run", "scribe", "--prompt", JSON.stringify({ files: encodeFiles(files), text: "done" }));
  expect(runResult, runResult.stderr).toMatchObject({ code: 0, stdout: "done\n" });
  const id = JSON.parse((await run("runs", "list", "--json")).stdout).run_id as string; // The output is one line of JSON with the run.
  return { cwd, env, run, id, made: runResult };
}

describe("runs files", () => {
  it("lists the files of a run, and prints each unchanged", async () => {
    const { run, id, made: runResult } = await createRunWithFiles();
    expect(runResult.stderr).toContain(`3 files: drover runs files ${id}\n`);
    const listed = await run("runs", "files", id);
    expect(
      listed.stdout
        .trim()
        .split("\n")
        .map((line) => line.split("\t")),
    ).toEqual([
      ["3", expect.stringMatching(/^text\/plain/), hash("hi\n"), "hello.txt"],
      [String(binary.length), "image/png", hash(binary), "out/chart.png"],
      ["5", expect.stringMatching(/^text\/markdown/), hash("# ok\n"), "out/ünïcode name.md"],
    ]);
    expect(listed.stderr).toBe(`Print one: drover runs files ${id} hello.txt\n`);
    const lines = (await run("runs", "files", id.slice(0, 18), "--json")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).path)).toEqual(["hello.txt", "out/chart.png", "out/ünïcode name.md"]);

    expect(await run("runs", "files", id, "hello.txt")).toMatchObject({ code: 0, stdout: "hi\n", stderr: "" });
    expect((await run("runs", "files", id, "./out/ünïcode name.md")).stdout).toBe("# ok\n");
    expect(JSON.parse((await run("runs", "files", id, "hello.txt", "--json")).stdout)).toMatchObject({ text: "hi\n" });
    const png = JSON.parse((await run("runs", "files", id, "out/chart.png", "--json")).stdout);
    expect(png).toMatchObject({ base64: binary.toString("base64"), sha256: hash(binary) });

    expect((await run("runs", "show", id)).stdout).toMatch(new RegExp(`files +3: drover runs files ${id}`));
    expect(JSON.parse((await run("runs", "show", id, "--json")).stdout).files).toHaveLength(3);
    expect((await run("runs", "events", id)).stdout).toContain("file hello.txt (3 B, text/plain");
  });

  it("uses the coordinator if there is one", async () => {
    const cwd = createDirectory();
    writeScribe(cwd);
    const coordinator = await startCoordinator(cwd);
    await startRunner(coordinator, cwd, "one", ["-x", "./profiles/scribe.json"]);
    const env = {
      DROVER_API_URL: coordinator.url,
      DROVER_API_KEY: coordinator.token,
      DROVER_STATE_DIR: join(cwd, "none"),
    };
    const run = (...args: string[]) => drover(args, { cwd, env });
    const prompt = JSON.stringify({ files: encodeFiles({ "a b.txt": "x" }), big: 3_000_000, text: "ok" });
    const runResult = JSON.parse((await run("run", "scribe", "--prompt", prompt, "--json")).stdout);
    expect(runResult).toMatchObject({ status: "completed", result_text: "ok" });
    expect((await run("runs", "files", runResult.run_id, "a b.txt")).stdout).toBe("x");
    const largeFile = (await run("runs", "files", runResult.run_id, "big.txt")).stdout;
    expect(hash(largeFile)).toBe(hash(Buffer.alloc(3_000_000, "0123456789abcdef\n")));
    expect((await run("runs", "files", runResult.run_id, "-o", "x")).stderr).toContain("--output needs the path");

    const runWithoutFiles = await run("run", "scribe", "--prompt", JSON.stringify({ text: "none" }), "--json");
    const none = await run("runs", "files", JSON.parse(runWithoutFiles.stdout).run_id);
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: "The run has no files.\n" });
  });

  it("suggests similar paths for an unknown one", async () => {
    const { run, id } = await createRunWithFiles();
    const withTypo = await run("runs", "files", id, "helo.txt");
    expect(withTypo).toMatchObject({ code: 2, stdout: "" });
    expect(withTypo.stderr).toContain("Did you mean hello.txt?");
    expect(withTypo.stderr).toContain(`drover runs files ${id}`);
    expect((await run("runs", "files", id, "chart.png")).stderr).toContain("Did you mean out/chart.png?");
    expect((await run("runs", "files", id, "../../etc/passwd")).stderr).toContain("DROVER-USE-008");
    expect((await run("runs", "files", "ffff", "x")).stderr).toContain("Unknown run: ffff");
  });
});

describe("runs files -o", () => {
  it("writes a new file, and overwrites one only with --force", async () => {
    const { cwd, run, id } = await createRunWithFiles();
    const saved = await run("runs", "files", id, "out/chart.png", "-o", "chart.png");
    expect(saved, saved.stderr).toMatchObject({ code: 0, stdout: "" });
    expect(saved.stderr).toContain(`Wrote ${join(cwd, "chart.png")} (10 B).`);
    expect(readFileSync(join(cwd, "chart.png"))).toEqual(binary);
    expect(statSync(join(cwd, "chart.png")).mode & 0o777).toBe(0o644 & ~process.umask());

    writeFileSync(join(cwd, "mine.txt"), "mine");
    const refused = await run("runs", "files", id, "hello.txt", "--output", "mine.txt");
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain("already exists");
    expect(readFileSync(join(cwd, "mine.txt"), "utf8")).toBe("mine");

    symlinkSync(join(cwd, "mine.txt"), join(cwd, "link.txt"));
    expect((await run("runs", "files", id, "hello.txt", "-o", "link.txt")).code).toBe(2);
    expect((await run("runs", "files", id, "hello.txt", "-o", "link.txt", "--force")).code).toBe(0);
    expect(lstatSync(join(cwd, "link.txt")).isFile()).toBe(true);
    expect(readFileSync(join(cwd, "link.txt"), "utf8")).toBe("hi\n");
    expect(readFileSync(join(cwd, "mine.txt"), "utf8")).toBe("mine");

    symlinkSync(join(cwd, "nowhere.txt"), join(cwd, "dangling.txt"));
    expect((await run("runs", "files", id, "hello.txt", "-o", "dangling.txt")).code).toBe(2);
    expect(existsSync(join(cwd, "nowhere.txt"))).toBe(false);
    expect(readdirSync(cwd).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  it("saves it under its own name in a directory, and reports failures", async () => {
    const { cwd, run, id } = await createRunWithFiles();
    mkdirSync(join(cwd, "into"));
    const json = await run("runs", "files", id, "out/chart.png", "-o", "into", "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ path: "out/chart.png", file: join(cwd, "into", "chart.png") });
    expect(readFileSync(join(cwd, "into", "chart.png"))).toEqual(binary);
    const nowhere = await run("runs", "files", id, "hello.txt", "-o", "missing/here.txt");
    expect(nowhere.code).toBe(125);
    expect(nowhere.stderr).toContain("DROVER-OUT-001");
    expect(existsSync(join(cwd, "missing"))).toBe(false);
  });

  it("leaves no file if the content does not match its recorded hash", async () => {
    const { cwd, run, id } = await createRunWithFiles({ "hello.txt": "hi\n" });
    const state = join(cwd, "state");
    const stored = readdirSync(state, { recursive: true, encoding: "utf8" })
      .map((name) => join(state, name))
      .filter((file) => file.includes(hash("hi\n").slice(2)) && statSync(file).isFile());
    expect(stored).toHaveLength(1);
    writeFileSync(stored[0]!, "ho\n");
    const damaged = await run("runs", "files", id, "hello.txt", "-o", "out.txt");
    expect(damaged.code).toBe(125);
    expect(damaged.stderr).toContain("SHA-256");
    expect(readdirSync(cwd).filter((name) => name.startsWith("out.txt"))).toEqual([]);
  });
});

// util-linux's `script` provides a real terminal
const hasTerminal = it.runIf(process.platform === "linux" && spawnSync("script", ["--version"]).status === 0);

hasTerminal("a terminal gets sanitized text, and binary files only with --force", async () => {
  const { cwd, env, id } = await createRunWithFiles({ "a.txt": "plain\n\u001b[2J\u001b[31mred\n", "b.bin": binary });
  const show = (words: string) =>
    spawnSync("script", ["-qec", `exec "$NODE" "$BIN" runs files ${id} ${words}`, "/dev/null"], {
      cwd,
      env: { ...process.env, ...env, SHELL: "/bin/sh", NODE: process.execPath, BIN: bin },
      encoding: "latin1",
    });
  expect(show("a.txt").stdout.replaceAll("\r", "")).toBe("plain\n[2J\u001b[31mred\n");
  const refused = show("b.bin");
  expect(refused.status).toBe(2);
  expect(refused.stdout).toContain("is binary, and stdout is a terminal");
  expect(refused.stdout).toContain(`drover runs files ${id} b.bin -o FILE`);
  expect(show("b.bin --force")).toMatchObject({ status: 0, stdout: binary.toString("latin1") });
  expect(show("").stdout).toMatch(/SIZE +TYPE +SHA256 +PATH/);
});
