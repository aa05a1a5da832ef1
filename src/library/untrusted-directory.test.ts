import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runAgent } from "./run-agent.ts";

let cwd: string;
let warnings: string[];
const collectWarning = (warning: Error): void => void warnings.push(warning.message);
beforeEach(() => {
  cwd = realpathSync(mkdtempSync(join(tmpdir(), "drover-library-")));
  warnings = [];
  process.on("warning", collectWarning);
});
afterEach(() => {
  process.off("warning", collectWarning);
  rmSync(cwd, { recursive: true, force: true });
});

it("ignores profiles and settings of an untrusted working directory, but applies what the caller passes", async () => {
  const evidence = join(cwd, "module-ran");
  mkdirSync(join(cwd, "profiles"));
  writeFileSync(join(cwd, "evil.mjs"), `import { writeFileSync } from "node:fs"; writeFileSync("${evidence}", "");`);
  writeFileSync(join(cwd, "profiles", "procedural.json"), '{"type": "procedural", "module": "./evil.mjs"}');
  writeFileSync(join(cwd, "drover.yaml"), "isolation: none\nprovider: nowhere\n");
  const env = { PATH: process.env["PATH"], HOME: cwd };
  const agent = { name: "own", command: "echo own" };
  const result = await runAgent({ agent, prompt: "", stateDir: join(cwd, "state"), cwd, env });
  expect(result).toMatchObject({ success: true });
  expect(existsSync(evidence)).toBe(false);
  await expect
    .poll(() => warnings.join("\n"))
    .toContain(`${cwd} is not trusted: ignored isolation of drover.yaml, provider of drover.yaml, profiles/ (1).`);
});
