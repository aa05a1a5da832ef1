import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runAgent } from "./run-agent.ts";

let cwd: string;
let warnings: string[];
const note = (warning: Error): void => void warnings.push(warning.message);
beforeEach(() => {
  cwd = realpathSync(mkdtempSync(join(tmpdir(), "drover-library-")));
  warnings = [];
  process.on("warning", note);
});
afterEach(() => {
  process.off("warning", note);
  rmSync(cwd, { recursive: true, force: true });
});

it("ignores profiles and settings of an untrusted working directory, but applies what the caller passes", async () => {
  const mark = join(cwd, "it-ran");
  mkdirSync(join(cwd, "profiles"));
  writeFileSync(join(cwd, "evil.mjs"), `import { writeFileSync } from "node:fs"; writeFileSync("${mark}", "");`);
  writeFileSync(join(cwd, "profiles", "procedural.json"), '{"type": "procedural", "module": "./evil.mjs"}');
  writeFileSync(join(cwd, "drover.yaml"), "isolation: none\nprovider: nowhere\n");
  const env = { PATH: process.env["PATH"], HOME: cwd };
  const agent = { name: "mine", command: "echo mine" };
  const result = await runAgent({ agent, prompt: "", stateDir: join(cwd, "state"), cwd, env });
  expect(result).toMatchObject({ success: true });
  expect(existsSync(mark)).toBe(false);
  await expect
    .poll(() => warnings.join("\n"))
    .toContain(`${cwd} is not trusted: ignored isolation of drover.yaml, provider of drover.yaml, profiles/ (1).`);
});
