import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { createProxy } from "./proxy.ts";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();

/** Playwright waits before it acts, but reads must be polled. */
const expectText = (page: Page, selector = "main") => expect.poll(() => page.locator(selector).innerText());
const count = (page: Page, selector: string) => expect.poll(() => page.locator(selector).count());

test("a link signs in once, and a used link says how to get another", async () => {
  const { page } = await ui.open();
  await expectText(page, "nav[aria-label=Pages]").toContain("Overview");
  expect(page.url()).not.toContain("code=");
  const otherBrowserPage = await (await ui.browser.newContext()).newPage();
  const link = await ui.link();
  await page.goto(ui.url + link);
  await expect.poll(() => page.url()).not.toContain("code=");
  await expect
    .poll(async () => (await ui.client.tokens.list()).items.filter(({ kind }) => kind === "browser").length)
    .toBe(2);
  await otherBrowserPage.goto(ui.url + link);
  await expectText(otherBrowserPage).toContain("was already used");
  await expectText(otherBrowserPage).toContain("drover ui");
  // Signing out ends the session in the whole browser, and the page shows no data any more.
  await page.goto(`${ui.url}/ui/settings`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expectText(page).toContain("You are signed out");
});

test("starts echo from its form, shows its JSON and exit code, and runs it again with another message", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/agents`);
  await page.getByRole("button", { name: "Run echo" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("message").fill("Hello from a form");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await count(page, 'main [data-status="completed"]').toBeGreaterThan(0);
  await page.getByRole("link", { name: "Result" }).click();
  await expectText(page).toContain('message: "Hello from a form"');
  await expectText(page, "[data-testid=exit-code]").toBe("0");
  const first = page.url();
  await page.getByRole("button", { name: "Edit and run again" }).click();
  expect(await dialog.getByLabel("message").inputValue()).toBe("Hello from a form");
  await dialog.getByLabel("message").fill("Edited");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await expect.poll(() => page.url()).not.toBe(first);
  await page.getByRole("link", { name: "Result" }).click();
  await expectText(page).toContain('message: "Edited"');
});

test("shows the reason, the exit code and the log of a run that failed", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/agents/disk-usage`);
  await page.locator("main input").first().fill("/there/is/no/such/folder");
  await page.locator("main").getByRole("button", { name: "Run", exact: true }).click();
  await count(page, 'main [data-status="failed"]').toBeGreaterThan(0);
  await page.getByRole("link", { name: "Log" }).click();
  await expectText(page, "[role=log]").toContain("is not a directory");
  await expectText(page).toContain("exit_nonzero");
  await expectText(page).toContain("exit 1");
});

test("announces a run started elsewhere, and updates it without a reload until it is stopped", async () => {
  await ui.client.agents.put("slow", { command: "sleep 600" });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/runs`);
  await page.locator("main h1").waitFor();
  const { run_id } = await ui.client.submit({ agent_name: "slow" });
  await page
    .getByRole("button", { name: /\d+ new/ })
    .or(page.getByRole("link", { name: "slow" }))
    .first()
    .click();
  await page.getByRole("link", { name: "slow" }).first().click();
  await expect.poll(() => page.url()).toContain(run_id);
  await count(page, 'main [data-status="running"]').toBeGreaterThan(0);
  await page.getByRole("button", { name: "Stop" }).click();
  await count(page, 'main [data-status="cancelled"]').toBeGreaterThan(0);
  expect((await ui.client.runs.get(run_id)).status).toBe("cancelled");
});

test("says why a run is waiting", async () => {
  const { run_id } = await ui.client.submit({
    agent_name: "echo",
    parameters: { message: "x" },
    demands: { tags: ["gpu"] },
  });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}`);
  await expectText(page).toMatch(/gpu/);
  await count(page, 'main [data-status="pending"]').toBeGreaterThan(0);
  await ui.client.runs.stop(run_id);
});

test("approves, edits and denies questions from the inbox by keyboard", async () => {
  const { page } = await ui.open();
  const steps = ["First step", "Second step", "Third step"];
  const { run_id } = await ui.client.submit({ agent_name: "checklist", attended: true, parameters: { steps } });
  await page.goto(`${ui.url}/ui/inbox`);
  await expectText(page).toContain("First step");
  await expectText(page).toMatch(/asks to use\s+step\s+\(changes something\)/);
  await expectText(page).toContain("expires in 7d");
  await expect.poll(() => page.title()).toMatch(/^\(1\)/);
  await page.keyboard.press("a");
  await expectText(page).toContain("Second step");
  await page.keyboard.press("e");
  await page.locator("main textarea").fill('{"step": "Another step"}');
  await page.getByRole("button", { name: "Approve the changed input" }).click();
  await expectText(page).toContain("Third step");
  await page.keyboard.press("d");
  await page.locator("main textarea").fill("not today");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await expectText(page).toContain("No open questions");
  await expectText(page).toContain("not today");
  await page.goto(`${ui.url}/ui/runs/${run_id}?tab=files`);
  await expectText(page).toContain("Another step");
  const shown = await page.locator("main").innerText();
  expect([shown.includes("First step"), shown.includes("Second step"), shown.includes("Third step")]).toEqual([
    true,
    false,
    false,
  ]);
});

test("an empty inbox suggests an agent only if Drover has it", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/inbox`);
  await expectText(page).toContain("drover run checklist");
  await page.route("**/agents", async (route) => {
    const response = await route.fetch();
    const { items } = (await response.json()) as { items: { name: string }[] };
    await route.fulfill({ response, json: { items: items.filter(({ name }) => name !== "checklist") } });
  });
  await page.reload();
  await expectText(page).toContain("No open questions");
  await expectText(page).not.toContain("drover run checklist");
  await page.unrouteAll({ behavior: "wait" });
});

test("shows a tool's changes, approves, edits and denies them with the mouse, and shows each decision", async () => {
  const { page } = await ui.open();
  const { run_id } = await ui.client.submit({ agent_name: "careful", prompt: "write three files", attended: true });
  await page.goto(`${ui.url}/ui/inbox`);
  const question = page.getByRole("article", { name: "careful asks to use file.write" });
  await expect.poll(() => question.innerText()).toMatch(/first\.txt[\s\S]*\+The first text\./);
  await question.getByRole("button", { name: "Approve" }).click();
  await expect.poll(() => question.innerText()).toContain("+The second text.");
  await question.getByRole("button", { name: "Edit" }).click();
  await question.getByLabel("Input").fill('{"path": "second.txt", "content": "Somebody changed it."}');
  await question.getByRole("button", { name: "Approve the changed input" }).click();
  await expect.poll(() => question.innerText()).toContain("+The third text.");
  await question.getByRole("button", { name: "Deny" }).click();
  await question.getByLabel("Reason for the agent").fill("Two files are enough.");
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await expectText(page).toContain("No open questions");
  await page.goto(`${ui.url}/ui/runs/${run_id}?tab=conversation`);
  await count(page, 'main [data-status="completed"]').toBeGreaterThan(0);
  await expectText(page).toMatch(
    /approved by admin[\s\S]*approved by admin[\s\S]*denied by admin[\s\S]*Two files are enough/,
  );
  await page.getByRole("link", { name: /^Files/ }).click();
  await expectText(page).toMatch(/first\.txt[\s\S]*second\.txt/);
  await expectText(page).not.toContain("third.txt");
  await page.locator("main").getByText("second.txt").click();
  await expectText(page).toContain("Somebody changed it.");
});

test("resumes and forks from a run's page, and lists the fork below its session with a link to it", async () => {
  const { run_id, session_id } = await ui.client.submit({ agent_name: "writer", prompt: "the first message" });
  for await (const _ of ui.client.runs.follow(run_id)) void _;
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/runs/${run_id}`);
  const dialog = page.getByRole("dialog");
  const continued = async (word: "Resume" | "Fork", message: string): Promise<string> => {
    const urlBefore = page.url();
    await page.getByRole("button", { name: word, exact: true }).click();
    await dialog.getByLabel("Message").fill(message);
    await dialog.getByRole("button", { name: word, exact: true }).click();
    await expect.poll(() => page.url()).not.toBe(urlBefore);
    await count(page, 'main h1 + [data-status="completed"]').toBe(1);
    await expectText(page).toContain(word.toLowerCase());
    return new URL(page.url()).pathname.split("/").at(-1)!;
  };
  expect((await ui.client.runs.get(await continued("Resume", "the second message"))).session_id).toBe(session_id);
  const fork = await ui.client.runs.get(await continued("Fork", "in a copy of it"));
  expect([fork.forked_from, fork.session_id === session_id]).toEqual([session_id, false]);
  await page.getByRole("link", { name: /^forked from/ }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("session")).toBe(session_id);
  await count(page, '[role=table] [role=rowgroup] [role=row] a:text-is("writer")').toBe(2);
  await page.goto(`${ui.url}/ui/chat?session=${fork.session_id}`);
  await expectText(page, "[role=log]").toContain("in a copy of it");
  await page.getByRole("link", { name: "forked" }).click();
  await expectText(page, "[role=log]").toMatch(/the first message[\s\S]*the second message/);
});

test("chats with an agent on the scripted provider, then resumes and forks the conversation", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/chat`);
  await page.getByLabel("Agent").selectOption("writer");
  await page.getByLabel("Message").fill("write a haiku");
  await page.keyboard.press("Enter");
  await expectText(page, "[role=log]").toContain("write a haiku");
  await expectText(page, "[role=log]").toContain("The haiku is there.");
  await expectText(page, "[role=log]").toContain("file.write");
  await count(page, '[role=log] [data-status="completed"]').toBe(1);
  const first = new URL(page.url()).searchParams.get("session");
  await page.getByLabel("Message").fill("and another");
  await page.keyboard.press("Enter");
  await expectText(page, "[role=log]").toContain("and another");
  await count(page, '[role=log] [data-status="completed"]').toBe(2);
  expect(new URL(page.url()).searchParams.get("session")).toBe(first);
  await page.getByLabel("Message").fill("in a copy");
  await page.getByRole("button", { name: "Fork" }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("session")).not.toBe(first);
  await expectText(page, "[role=log]").toContain("in a copy");
});

test("chats with echo, asking for its parameters in a form", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=echo`);
  await page.locator("main form").getByLabel("message").fill("said in the chat");
  await page.locator("main form").getByRole("button", { name: "Run" }).click();
  await expectText(page, "[role=log]").toMatch(/Completed[\s\S]*exit code 0[\s\S]*message: "said in the chat"/);
});

test("creates and edits an agent, with a Command field only for procedural agents", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/agents/new`);
  await page.getByLabel("Name").fill("greeter");
  await expectText(page).toContain("CLI command to execute (e.g., python -m crawler.main)");
  await page.getByLabel("Type").selectOption("autonomous");
  expect(await page.getByLabel("Command").count()).toBe(0);
  await page.getByLabel("Type").selectOption("procedural");
  await page.getByLabel("Command").fill("echo hi");
  await page.getByLabel("Schema JSON").fill('{"type": "object", "properties": {"shout": {"type": "boolean"}}}');
  await page.getByLabel("shout").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await expect.poll(() => page.url()).toContain("/agents/greeter");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByLabel("Description").fill("Greets");
  await page.getByRole("button", { name: "Save" }).click();
  await expectText(page).toContain("Greets");
  expect(await ui.client.agents.get("greeter")).toMatchObject({ command: "echo hi", description: "Greets" });
});

test("shows a lost connection in the middle of a run, and has every line once afterwards", async () => {
  await ui.client.agents.put("lines", {
    command: "sh -c 'i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i.; sleep 0.02; done'",
  });
  const proxy = await createProxy(ui.url);
  const { page } = await ui.open({ url: proxy.url });
  const { run_id } = await ui.client.submit({ agent_name: "lines" });
  await page.goto(`${proxy.url}/ui/runs/${run_id}?tab=log`);
  await expectText(page, "[role=log]").toContain("line 1.");
  proxy.cut();
  await count(page, '[data-connection="reconnecting"]').toBe(1);
  await expect.poll(async () => (await ui.client.runs.get(run_id)).status).toBe("completed");
  proxy.restore();
  await count(page, '[data-connection="live"]').toBe(1);
  await count(page, 'main [data-status="completed"]').toBeGreaterThan(0);
  await expectText(page, "[role=log]").toContain("line 200.");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Raw" }).click(),
  ]);
  const lines = await readAll(await download.createReadStream());
  expect(lines.trim().split("\n")).toEqual(Array.from({ length: 200 }, (_, index) => `line ${index + 1}.`));
  await proxy.close();
});

test("ten tabs share one event stream, and each shows updates", async () => {
  const { page: first, context } = await ui.open();
  const streams = async (): Promise<number> => Number(/^drover_event_streams (\d+)$/m.exec(await metrics())?.[1]);
  // Streams of earlier tests ended with their pages.
  await expect.poll(streams).toBe(1);
  const tabs = [first, ...(await Promise.all(Array.from({ length: 9 }, () => context.newPage())))];
  for (const tab of tabs) {
    await tab.goto(`${ui.url}/ui/runs?agent=ten-tabs`);
    await count(tab, '[data-connection="live"]').toBe(1);
    await expectText(tab).toContain("No run matches these filters");
  }
  await ui.client.agents.put("ten-tabs", { command: "echo seen" });
  await ui.client.submit({ agent_name: "ten-tabs" });
  for (const tab of tabs) await count(tab, 'main [data-status="completed"]').toBe(1);
  expect(await streams()).toBe(1);
});

async function metrics(): Promise<string> {
  const { token } = await ui.client.tokens.create({ role: "viewer", subject: "*" });
  return (await fetch(`${ui.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
}

async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  let wholeText = "";
  for await (const chunk of stream) wholeText += String(chunk);
  return wholeText;
}
