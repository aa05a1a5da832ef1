import { expect, onTestFinished, test } from "vitest";
import { useDrover } from "./drover-ui.ts";
import { payloads } from "./payloads.ts";
import { allowReceivers, openReceiver } from "./receiver.ts";

const ui = useDrover({ "drover.yaml": allowReceivers });

test("300 payloads in the text of models, commands and users run no script and contact no other host", async () => {
  expect(payloads).toHaveLength(300);
  const allPayloads = payloads.join("\n\n");
  await ui.client.agents.put("hostile-command", {
    title: payloads[0]!,
    description: allPayloads.slice(0, 2000),
    command: "cat /dev/stdin",
    parameters_schema: {
      type: "object",
      properties: {
        [payloads[1]!]: { type: "string", title: payloads[2], description: payloads[3], default: payloads[4] },
      },
    },
  });
  const runToEnd = async (agent_name: string, fields: object): Promise<string> => {
    const { run_id } = await ui.client.submit({ agent_name, ...fields });
    for await (const _ of ui.client.runs.follow(run_id)) void _;
    return run_id;
  };
  const echo = await runToEnd("echo", { parameters: { message: allPayloads } });
  const texts = await runToEnd("hostile", { prompt: allPayloads, task_id: payloads[1]! });
  const waitingRun = await ui.client.submit({
    agent_name: "checklist",
    attended: true,
    parameters: { steps: payloads.slice(0, 60).map((text) => text) },
  });
  for await (const { event } of ui.client.runs.follow(waitingRun.run_id))
    if (event.type === "permission_request") break;
  await ui.client.tokens.create({ role: "user", subject: "somebody", label: payloads[7]!.slice(0, 150) });
  const schedule = await ui.client.schedules.create({
    agent_name: "hostile",
    name: "hostile",
    cron: "0 3 * * *",
    prompt: allPayloads,
    parameters: { [payloads[1]!]: allPayloads },
  });
  const receiver = await openReceiver();
  onTestFinished(() => receiver.close());
  receiver.response = { status: 500, text: allPayloads };
  await ui.client.webhooks.add({ name: "hostile", url: receiver.url, payload: { text: allPayloads.slice(0, 10_000) } });
  await ui.client.hooks.add({ name: "hostile", agent_name: "hostile", prompt: allPayloads.replaceAll("{{", "{ {") });
  const slot = await ui.client.schedules.run(schedule.schedule_id);
  for await (const _ of ui.client.runs.follow(slot.run_id)) void _;
  await expect.poll(async () => (await ui.client.webhooks.deliveries()).items[0]?.response_status).toBe(500);
  const { page, faults } = await ui.open();
  const tabs = ["timeline", "conversation", "log", "result", "files", "audit", "raw"];
  const session = (await ui.client.runs.get(texts)).session_id;
  for (const path of [
    "/",
    "/inbox",
    "/runs",
    "/agents",
    "/agents/hostile-command",
    ...[echo, texts, waitingRun.run_id].flatMap((run_id) => tabs.map((tab) => `/runs/${run_id}?tab=${tab}`)),
    `/chat?session=${session}`,
    "/chat?agent=hostile-command",
    "/sessions",
    "/schedules",
    `/schedules/${schedule.schedule_id}`,
    "/schedules/new?agent=hostile-command",
    "/webhooks",
    "/webhooks?tab=out",
    "/webhooks?tab=in",
    "/runners",
    "/audit",
    "/settings",
  ]) {
    await page.goto(`${ui.url}/ui${path}`);
    await page.locator("main :is(h1, h2)").first().waitFor({ state: "attached" });
    await expect.poll(() => page.locator("[aria-busy]").count(), { message: path }).toBe(0);
    expect([path, await page.evaluate("window.pwned"), faults]).toEqual([path, undefined, []]);
  }
  // They are shown as plain text.
  await page.goto(`${ui.url}/ui/runs/${texts}?tab=conversation`);
  await expect
    .poll(() => page.locator("main").innerText())
    .toContain("[image: picture] http://outside.example/pixel.png");
  expect(await page.locator("main script, main iframe, main img, main form").count()).toBe(0);
}, 600_000);

test("a question shows text-direction characters, so that the approved text is the text that was read", async () => {
  const step = "open \u202Egpj.exe";
  await ui.client.submit({ agent_name: "checklist", attended: true, parameters: { steps: [step] } });
  const { page } = await ui.open();
  await page.goto(`${ui.url}/ui/inbox`);
  await expect.poll(() => page.locator("main").innerText()).toContain("open ⟨U+202E⟩gpj.exe");
});
