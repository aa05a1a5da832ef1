import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();
const root = dirname(dirname(import.meta.dirname));

test("npm start shows a first run and ends with a link that signs a browser in", async () => {
  const place = mkdtempSync(join(tmpdir(), "drover-start-"));
  const start = spawn(process.execPath, [join(root, "scripts", "start.mjs"), "--port", "0"], {
    env: { ...process.env, HOME: place, DROVER_STATE_DIR: join(place, "state") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    start[name].on("data", (chunk: Buffer) => (said[name] += chunk.toString()));
  const ended = new Promise((resolve) => start.once("close", resolve));
  onTestFinished(async () => {
    start.kill("SIGTERM");
    await ended;
    rmSync(place, { recursive: true, force: true });
  });
  const links = () => [...`${said.stderr}\n${said.stdout}`.matchAll(/\S+#code=\S+/g)].map(([link]) => link);
  await expect.poll(() => links().length, { message: said.stderr }).toBeGreaterThan(0);
  const [link = ""] = links();
  const page = await (await ui.browser.newContext()).newPage();
  await page.goto(link);
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByRole("link", { name: "echo" }).click();
  await expect.poll(() => page.locator("main").innerText()).toContain("exit 0");
  await page.context().close();
  start.kill("SIGTERM");
  await ended;
  expect(links()).toEqual([link]);
  expect(said.stdout.trimEnd().split("\n").at(-1)).toBe(link);
  expect(said.stdout).toContain('{"message":"Hello World"}');
});
