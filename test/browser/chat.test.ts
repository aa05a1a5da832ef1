import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { useDrover } from "./drover-ui.ts";

/** Gives numbered answers, so that turns can be distinguished, and asks before it writes. */
const script = {
  turns: [
    { text: "The first answer.", usage: { input_tokens: 1000, output_tokens: 100 } },
    { text: "The second answer." },
    { text: "The third answer." },
  ],
};
const askingScript = {
  turns: [
    {
      text: "I will write it down.",
      tools: [
        { name: "file.write", input: { path: "note.txt", content: "One line.\nAnother line.\n" } },
        { name: "file.write", input: { path: "other.txt", content: "Something else.\n" } },
      ],
    },
    { text: "I have read your message." },
  ],
};

/** An executor without `input`, so that messages sent while it works become the next turn. */
const executorWithoutInput = `import { defineExecutor } from "drover";
export const executor = defineExecutor({
  name: "patient",
  can: { resume: true, ask: true, state: true },
  async execute({ invocation, context }) {
    await context.session.save("patient-1", Buffer.from("{}"));
    if (invocation.mode === "start") await context.ask({ request_id: "end", tool: "end", input: { after: invocation.prompt } });
    await context.emit({ type: "assistant", text: "Heard: " + invocation.prompt });
    return "done";
  },
});
`;

const model = (name: string): string =>
  JSON.stringify({
    type: "model",
    agents_dir: `./agents/${name}`,
    config: { provider: "scripted", script: `scripts/${name}.json` },
  });

const ui = useDrover({
  "profiles/talker.json": model("talker"),
  "agents/talker/talker.md": "# Talker\n\nYou answer.\n",
  "scripts/talker.json": JSON.stringify(script),
  "profiles/asker.json": model("asker"),
  "agents/asker/asker.md": "---\npermissions: { mode: default }\n---\n# Asker\n\nYou ask before you write.\n",
  "scripts/asker.json": JSON.stringify(askingScript),
  "profiles/patient.json": JSON.stringify({
    type: "patient",
    module: "./executors/patient.ts",
    agents_dir: "./agents/patient",
  }),
  "executors/patient.ts": executorWithoutInput,
  "agents/patient/patient.json": JSON.stringify({
    name: "patient",
    type: "autonomous",
    executor: "patient",
    attended: true,
  }),
});

const thread = (page: Page) => expect.poll(() => page.locator("[role=log]").innerText());
const count = (page: Page, selector: string) => expect.poll(() => page.locator(selector).count());
const findSession = (page: Page): string | null => new URL(page.url()).searchParams.get("session");
const queue = (page: Page) => page.getByRole("list", { name: "Queued messages" });

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

test("keeps text that is typed while a message is being sent", async () => {
  const { page, faults } = await ui.open();
  const input = page.getByLabel("Message", { exact: true });
  /** Types during the request, which is held back until then. */
  const typeWhileSending = async (message: string, addition: string) => {
    let sendOn: () => void = () => undefined;
    const hasTyped = new Promise<void>((resolve) => (sendOn = resolve));
    await page.route("**/runs", async (route) => {
      if (route.request().method() === "POST") await hasTyped;
      await route.fallback();
    });
    // The button is disabled until the message before is sent, and is called Queue until its run is shown as ended.
    await expect.poll(() => page.getByRole("button", { name: "Send", exact: true }).isEnabled()).toBe(true);
    const request = page.waitForRequest((sent) => sent.method() === "POST" && sent.url().endsWith("/runs"));
    await send(page, message);
    await request;
    await input.pressSequentially(addition);
    sendOn();
    await page.unroute("**/runs");
  };
  await page.goto(`${ui.url}/ui/chat?agent=talker`);
  await typeWhileSending("one", " and two");
  await count(page, '[role=log] [data-status="completed"]').toBe(1);
  await expect.poll(() => input.inputValue()).toBe("and two");
  await typeWhileSending("three", " and four");
  await count(page, '[role=log] [data-status="completed"]').toBe(2);
  await expect.poll(() => input.inputValue()).toBe("and four");
  await thread(page).toMatch(/one[\s\S]*The first answer\.[\s\S]*three[\s\S]*The second answer\./);
  expect(faults).toEqual([]);
});

test("forks a conversation after the selected turn, and shows the turns that the copy kept", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=talker`);
  await send(page, "one");
  await count(page, '[role=log] [data-status="completed"]').toBe(1);
  const first = findSession(page);
  await send(page, "two");
  await count(page, '[role=log] [data-status="completed"]').toBe(2);
  await thread(page).toContain("The second answer.");
  await page.getByRole("button", { name: "Actions for this turn" }).first().click();
  await page.getByRole("menuitem", { name: "Fork after this turn" }).click();
  await page.getByText("after its first turn").waitFor();
  // The fork is in the URL and the draft is stored, so a reload loses neither.
  await page.getByLabel("Message", { exact: true }).fill("another two");
  await page.reload();
  await page.getByText("after its first turn").waitFor();
  expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("another two");
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect.poll(() => findSession(page)).not.toBe(first);
  await count(page, '[role=log] [data-status="completed"]').toBe(2);
  await thread(page).toMatch(
    /one[\s\S]*The first answer\.[\s\S]*forked here[\s\S]*another two[\s\S]*The second answer\./,
  );
  const shown = await page.locator("[role=log]").innerText();
  expect(shown.split("\n")).not.toContain("two");
  const copy = await ui.client.sessions.get(findSession(page)!);
  expect(copy).toMatchObject({ forked_from: first, fork_at_turn: 1 });
  expect(faults).toEqual([]);
});

test("edits an earlier message and asks again in a copy", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=talker`);
  await send(page, "begin");
  await count(page, '[role=log] [data-status="completed"]').toBe(1);
  await send(page, "go left");
  await count(page, '[role=log] [data-status="completed"]').toBe(2);
  const first = findSession(page);
  await page.getByRole("button", { name: "Actions for this turn" }).last().click();
  await page.getByRole("menuitem", { name: "Edit and ask again" }).click();
  await expect.poll(() => page.getByLabel("Message", { exact: true }).inputValue()).toBe("go left");
  await page.getByLabel("Message", { exact: true }).fill("go right");
  await page.keyboard.press("Enter");
  await expect.poll(() => findSession(page)).not.toBe(first);
  await thread(page).toContain("go right");
  expect(await ui.client.sessions.get(findSession(page)!)).toMatchObject({ forked_from: first, fork_at_turn: 1 });
  expect(faults).toEqual([]);
});

test("queues messages while the agent works: one is withdrawn, one is sent after the step", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=asker`);
  await send(page, "write a note");
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await thread(page).toContain("+One line.");
  await send(page, "forget this one");
  await send(page, "and sign it");
  await expect.poll(() => queue(page).innerText()).toMatch(/forget this one[\s\S]*and sign it/);
  // The queue survives a reload.
  await page.reload();
  await expect.poll(() => queue(page).innerText()).toContain("forget this one");
  await page.getByRole("button", { name: "Withdraw forget this one" }).click();
  expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("forget this one");
  await expect.poll(() => queue(page).innerText()).not.toContain("forget this one");
  await page.getByRole("button", { name: "Approve" }).first().click();
  // After its first step the run has the message and reads it with its next turn.
  await thread(page).toMatch(/write a note[\s\S]*not read yet\s+and sign it/);
  expect(await queue(page).innerText()).toContain("sent, not read yet");
  await page.getByRole("button", { name: "Approve" }).click();
  await thread(page).toMatch(/and sign it[\s\S]*I have read your message\./);
  await count(page, '[role=log] [data-status="completed"]').toBe(1);
  await expect.poll(() => queue(page).count()).toBe(0);
  const { versions } = await ui.client.sessions.get(findSession(page)!);
  expect(versions).toHaveLength(1);
  const { items } = await ui.client.runs.events(versions[0]!.run_id, { limit: 1000 });
  const texts = items.flatMap(({ event }) =>
    event.type === "system" && event.subtype === "user_input" ? [event.data] : [],
  );
  expect(texts).toEqual([expect.objectContaining({ text: "and sign it" })]);
  // The second write is shown as a diff too.
  await thread(page).toContain("+2");
  expect(faults).toEqual([]);
});

test("a message for an executor without input becomes the next turn", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=patient`);
  await send(page, "first");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await send(page, "second");
  await expect.poll(() => queue(page).innerText()).toContain("sent as the next turn");
  expect(await page.getByRole("button", { name: "Send now" }).count()).toBe(0);
  await page.getByRole("button", { name: "Approve" }).click();
  await thread(page).toMatch(/Heard: first[\s\S]*Heard: second/);
  await expect.poll(() => queue(page).count()).toBe(0);
  expect((await ui.client.sessions.get(findSession(page)!)).versions).toHaveLength(2);
  expect(faults).toEqual([]);
});

test("Stop ends the run, and queued messages stay until someone sends them", async () => {
  const { page, faults } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=asker`);
  await send(page, "write another note");
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  await send(page, "later, please");
  await expect.poll(() => queue(page).innerText()).toContain("later, please");
  await page.getByRole("button", { name: "Stop" }).click();
  await count(page, '[role=log] [data-status="cancelled"]').toBeGreaterThan(0);
  await expect.poll(() => queue(page).innerText()).toContain("not sent");
  expect((await ui.client.sessions.get(findSession(page)!)).versions).toHaveLength(1);
  await page.getByRole("button", { name: "Send now" }).click();
  await expect.poll(() => queue(page).count()).toBe(0);
  await expect.poll(async () => (await ui.client.sessions.get(findSession(page)!)).versions.length).toBe(2);
  await thread(page).toContain("later, please");
  expect(faults).toEqual([]);
});

test("lists procedural agents only if they were started in a chat", async () => {
  const { run_id } = await ui.client.submit({ agent_name: "echo", parameters: { message: "on a schedule" } });
  for await (const _ of ui.client.runs.follow(run_id)) void _;
  await ui.client.submit({ agent_name: "talker", prompt: "hello" });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=echo`);
  await thread(page).toContain("on a schedule");
  const conversations = page.getByRole("navigation", { name: "Conversations" });
  await conversations
    .getByRole("link", { name: /talker/ })
    .first()
    .waitFor();
  expect(await conversations.getByRole("link", { name: /echo/ }).count()).toBe(0);
  await page.getByLabel("message").fill("in the chat");
  await page.locator("main form").getByRole("button", { name: "Run" }).click();
  await expect.poll(() => conversations.getByRole("link", { name: /echo/ }).count()).toBe(1);
});

test("no toast covers the message field", async () => {
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/chat?agent=asker`);
  await send(page, "write a note");
  await page.getByRole("button", { name: "Approve" }).first().waitFor();
  // Looks at every frame, because toasts close on their own.
  const distance = page.evaluate(`new Promise((resolve) => {
    const measure = () => {
      const toast = document.querySelector("[role=status][aria-live=polite] > div");
      const field = document.querySelector("main textarea");
      if (toast === null) requestAnimationFrame(measure);
      else resolve(field.getBoundingClientRect().top - toast.getBoundingClientRect().bottom);
    };
    measure();
  })`);
  const [pixels] = await Promise.all([distance, page.getByRole("button", { name: "Approve" }).first().click()]);
  expect(pixels).toBeGreaterThan(0);
});
