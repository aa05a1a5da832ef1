import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();
const root = dirname(dirname(import.meta.dirname));

test("npm start shows a first run and ends with a link that signs a browser in", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-start-"));
  const start = spawn(process.execPath, [join(root, "scripts", "start.mjs"), "--port", "0"], {
    env: { ...process.env, HOME: directory, DROVER_STATE_DIR: join(directory, "state") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    start[name].on("data", (chunk: Buffer) => (output[name] += chunk.toString()));
  const closed = new Promise((resolve) => start.once("close", resolve));
  onTestFinished(async () => {
    start.kill("SIGTERM");
    await closed;
    rmSync(directory, { recursive: true, force: true });
  });
  const links = () => [...`${output.stderr}\n${output.stdout}`.matchAll(/\S+#code=\S+/g)].map(([link]) => link);
  await expect.poll(() => links().length, { message: output.stderr }).toBeGreaterThan(0);
  const [link = ""] = links();
  const page = await (await ui.browser.newContext()).newPage();
  await page.goto(link);
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByRole("link", { name: "echo" }).click();
  await expect.poll(() => page.locator("main").innerText()).toContain("exit 0");
  await page.context().close();
  start.kill("SIGTERM");
  await closed;
  expect(output.stderr).toMatch(/^Offers: (?:\S+, )*echo\b/m);
  expect(output.stderr).not.toContain(" of echo: ");
  expect(links()).toEqual([link]);
  expect(output.stdout.trimEnd().split("\n").at(-1)).toBe(link);
  expect(output.stdout).toContain('{"message":"Hello World"}');
});
