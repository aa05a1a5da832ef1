import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const write = (path: string, content: string) => ({ name: "file.write", input: { path, content } });

const ui = useDrover({
  "profiles/worker.json": JSON.stringify({
    type: "model",
    agents_dir: "./agents/worker",
    config: { provider: "scripted", script: "scripts/worker.json" },
  }),
  "agents/worker/worker.md": "---\npermissions: { mode: bypassPermissions }\n---\n# Worker\n\nYou leave files.\n",
  "scripts/worker.json": JSON.stringify({
    turns: [
      {
        text: "First the text files.",
        tools: [
          write("report.md", "# Report\n\n**Three** pages.\n"),
          write("counts.csv", 'name,count\nalpha,3\n"beta, two",5\n'),
          write("change.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"),
          { name: "file.read", input: { path: "absent-file.txt" } },
        ],
        usage: { input_tokens: 1000, output_tokens: 50 },
      },
      {
        text: "Then a picture.",
        tools: [{ name: "command.run", input: { command: `echo ${pixel} | base64 -d > dot.png` } }],
        usage: { input_tokens: 2000, output_tokens: 70 },
      },
      { text: "All are there.", usage: { input_tokens: 3000, output_tokens: 80 } },
    ],
  }),
});

const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
const steps = (page: Page) => page.getByRole("list", { name: "Steps" });

async function runToEnd(agent_name: string, changes: object): Promise<string> {
  const { run_id } = await ui.client.submit({ agent_name, ...changes });
  for await (const _ of ui.client.runs.follow(run_id)) void _;
  return run_id;
}

test("the waterfall opens at the failure, finds steps by their input, and shows tokens over time", async () => {
  const run_id = await runToEnd("worker", { prompt: "go" });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}`);
  // The first failure is selected, with its details beside it.
  await expectText(page).toContain("absent-file.txt: no such file or directory");
  await expect
    .poll(() => steps(page).innerText())
    .toMatch(/Waited for a runner[\s\S]*Attempt 1[\s\S]*Turn 1[\s\S]*Turn 3/);
  await expect
    .poll(() => page.getByRole("img", { name: /tokens/ }).getAttribute("aria-label"))
    .toContain("6,200 tokens");
  await page.getByLabel("Find a step").fill("beta, two");
  await expect.poll(() => steps(page).getByRole("listitem").count()).toBe(1);
  await steps(page)
    .getByRole("button", { name: /file\.write/ })
    .click();
  await expect.poll(() => page.url()).toMatch(/step=e\d+/);
  await expectText(page).toContain('+"beta, two",5');
  await page.getByLabel("Find a step").fill("");
  await page.getByLabel(/Only failures/).check();
  await expect.poll(() => steps(page).innerText()).not.toContain("file.write");
  await page.getByLabel(/Only failures/).uncheck();
  await page.getByRole("button", { name: "Fold Turn 2" }).click();
  await expect.poll(() => steps(page).innerText()).toMatch(/Turn 2 \+\d/);
  await steps(page)
    .getByRole("button", { name: /^Turn 2/ })
    .click();
  await expectText(page).toMatch(/Tokens in\s+2,000/);
  expect(faults).toEqual([]);
});

test("files are previewed by type, and all are downloaded as one archive", async () => {
  const run_id = await runToEnd("worker", { prompt: "go" });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}?tab=files&file=report.md`);
  await page.getByRole("heading", { name: "Report", exact: true }).waitFor();
  await page.getByRole("button", { name: /counts\.csv/ }).click();
  await expect.poll(() => page.getByRole("cell", { name: "beta, two" }).count()).toBe(1);
  await page.getByRole("button", { name: /change\.diff/ }).click();
  await expectText(page, "[aria-label=Changes]").toContain("+new");
  await page.getByRole("button", { name: /dot\.png/ }).click();
  await expect.poll(() => page.evaluate("document.querySelector('main img')?.naturalWidth")).toBe(1);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download all" }).click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^worker-.*\.zip$/);
  const bytes = await readAll(await download.createReadStream());
  expect(bytes.subarray(0, 4).toString("latin1")).toBe("PK\u0003\u0004");
  for (const name of ["change.diff", "counts.csv", "dot.png", "report.md"])
    expect([name, bytes.includes(name)]).toEqual([name, true]);
  expect(bytes.includes("**Three** pages.")).toBe(true);
  expect(faults).toEqual([]);
});

test("log lines have links, scrolling up stops following, and filters keep line numbers", async () => {
  await ui.client.agents.put("chatty", {
    command: "sh -c 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i.; done; echo oops >&2'",
  });
  const run_id = await runToEnd("chatty", {});
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}?tab=log`);
  const log = page.locator("[role=log]");
  await expectText(page, "[role=log]").toContain("line 400.");
  await page.evaluate("document.querySelector('[role=log]').scrollTo(0, 0)");
  await page.getByRole("button", { name: "Jump to latest" }).click();
  await expectText(page, "[role=log]").toContain("line 400.");
  await page.getByLabel("Find in the log").fill("line 120.");
  await expect.poll(() => log.locator("[data-index]").count()).toBe(1);
  const number = await log.getByRole("button").innerText();
  await log.getByRole("button").click();
  expect(new URL(page.url()).hash).toBe(`#L${number}`);
  await page.reload();
  await expect.poll(() => log.locator("[data-highlighted]").innerText()).toContain("line 120.");
  await page.getByLabel("Stream").selectOption("stderr");
  await expect.poll(() => log.locator("[data-index]").count()).toBe(1);
  await expectText(page, "[role=log]").toContain("oops");
  await page.getByLabel("Times").selectOption("since");
  await expectText(page, "[role=log]").toMatch(/\+\d+\.\d{3}s/);
  expect(faults).toEqual([]);
});

test("a procedural run shows its result above its timeline, and what its facts are", async () => {
  const run_id = await runToEnd("echo", { parameters: { message: "at a glance" } });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}`);
  await expectText(page).toMatch(
    /runner echo[\s\S]*trigger api[\s\S]*Result[\s\S]*at a glance[\s\S]*Waited for a runner/,
  );
  await expectText(page).toContain(run_id.slice(-8));
  const conversation = await runToEnd("worker", { prompt: "go" });
  await page.goto(`${ui.url}/ui/runs/${conversation}`);
  await expectText(page).toContain("Turn 3");
  expect(await page.getByRole("heading", { name: "Result", exact: true }).count()).toBe(0);
});

test("a run is copied as curl, as a command and as a link", async () => {
  const run_id = await runToEnd("echo", { parameters: { message: "it's me" } });
  const { page, context, faults } = await ui.open();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`${ui.url}/ui/runs/${run_id}`);
  const copied = async (entry: string): Promise<unknown> => {
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name: entry }).click();
    return page.evaluate("navigator.clipboard.readText()");
  };
  expect(await copied("Command line")).toBe(String.raw`drover run echo --message 'it'\''s me'`);
  expect(await copied("curl")).toContain(`curl -s ${ui.url}/runs`);
  expect(await copied("Link to this page")).toBe(`${ui.url}/ui/runs/${run_id}`);
  expect(faults).toEqual([]);
});

test("a child's question names its parent, and can be answered on the parent's page", async () => {
  await ui.client.agents.put("parent", { command: "sleep 600" });
  const parent = await ui.client.submit({ agent_name: "parent" });
  const child = await ui.client.submit({
    agent_name: "checklist",
    attended: true,
    parent_run_id: parent.run_id,
    parameters: { steps: ["Ask first"] },
  });
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/inbox`);
  await expectText(page, "article").toMatch(/checklist[\s\S]*for parent[\s\S]*Ask first/);
  await page.goto(`${ui.url}/ui/runs/${parent.run_id}`);
  await expectText(page).toContain("started 1 run");
  await expectText(page).toContain("Ask first");
  await page.getByLabel("Do not ask again in this session").check();
  await page.getByRole("button", { name: "Approve" }).click();
  await expect.poll(async () => (await ui.client.runs.get(child.run_id)).status).toBe("completed");
  await expect.poll(() => page.locator("article").count()).toBe(0);
  const { items } = await ui.client.questions.list({ open: false, run_id: child.run_id });
  expect(items).toMatchObject([{ decision: "allow", remember: "session" }]);
  await ui.client.runs.stop(parent.run_id);
  expect(faults).toEqual([]);
});

async function readAll(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks);
}
