import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { useDrover } from "./drover-ui.ts";

const ui = useDrover();

/** Asked by a script of the page, with the page's cookie. */
const ask = (path: string, init: object = {}): string =>
  `fetch(${JSON.stringify(path)}, ${JSON.stringify({ headers: { "content-type": "application/json" }, ...init })}).then(({ status }) => status)`;

test("a viewer's browser may look and nothing more, and no script can read its cookie", async () => {
  const { token } = await ui.client.tokens.create({ role: "viewer", subject: "vera" });
  const { page, context } = await ui.open({ token });
  expect(await page.evaluate("document.cookie")).toBe("");
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", domain: new URL(ui.url).hostname });
  expect(await page.evaluate(ask("/runs"))).toBe(200);
  for (const [path, init] of [
    ["/runs", { method: "POST", body: JSON.stringify({ agent_name: "echo", parameters: { message: "x" } }) }],
    ["/agents/mine", { method: "PUT", body: JSON.stringify({ command: "true" }) }],
    ["/tokens", { method: "POST", body: JSON.stringify({ role: "admin", subject: "vera" }) }],
    ["/sign-in/links", { method: "POST", body: "{}" }],
    ["/tokens", {}],
  ] as const)
    expect([path, await page.evaluate(ask(path, init))]).toEqual([path, 403]);
  // and the page says so instead of offering it
  await page.goto(`${ui.url}/ui/settings`);
  await page.getByText("vera, viewer").waitFor();
  expect(await page.getByRole("button", { name: "New token" }).count()).toBe(0);
});

test("revoking a token ends the streams of its browsers, and their pages show it", async () => {
  const { token, token_id } = await ui.client.tokens.create({ role: "user", subject: "rob" });
  const { page } = await ui.open({ token });
  // a stream of the page's own beside the one that all tabs share
  await page.evaluate(`void (window.streamEnd = fetch("/events", { headers: { accept: "text/event-stream" } }).then(async ({ body }) => {
    const reader = body.getReader();
    window.streamOpen = true;
    while (!(await reader.read()).done);
  }).catch(() => undefined).then(() => "ended"))`);
  await page.waitForFunction("window.streamOpen");
  await ui.client.tokens.revoke(token_id);
  expect(await page.evaluate("window.streamEnd")).toBe("ended");
  expect(await page.evaluate(ask("/me"))).toBe(401);
  await page.getByText("You are signed out").waitFor();
  expect(await page.locator("nav[aria-label=Pages]").count()).toBe(0);
});

test("a page of another origin can neither read nor write with the cookie of a signed-in browser", async () => {
  const { context, faults } = await ui.open();
  const before = await standing();
  // same host: even a cookie for the same site alone is sent there; and another name, to which it is not
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<h1>Elsewhere</h1>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))));
  const { port } = server.address() as AddressInfo;
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const page = await context.newPage();
    await page.goto(origin);
    const found = await page.evaluate(attack, ui.url);
    expect([origin, found]).toEqual([
      origin,
      {
        read: "refused",
        "read with a simple header": "refused",
        stream: "refused",
        image: "refused",
        script: "refused",
        write: "refused",
        "write as text": "opaque or refused",
        delete: "refused",
        "look into a window": "refused",
      },
    ]);
    // the dashboard was not framed: a page of the browser's own is there instead
    expect(page.frames().map((frame) => new URL(frame.url()).origin)).toEqual([origin, "null"]);
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
      await page.goto(origin);
      await page.evaluate(
        ([address, kind]) => {
          const form = document.createElement("form");
          Object.assign(form, { method: "POST", action: `${address}/runs`, enctype: kind });
          const input = document.createElement("input");
          // as text/plain this is a JSON body
          Object.assign(input, { name: '{"agent_name":"echo","parameters":{"message":"', value: 'x"}}' });
          form.append(input);
          document.body.append(form);
          form.submit();
        },
        [ui.url, enctype] as const,
      );
      await expect.poll(() => page.locator("body").innerText()).toMatch(/DROVER-API-013|DROVER-API-0\d\d/);
    }
    await page.close();
  }
  expect(await standing()).toEqual(before);
  // those of the foreign page, which are what is wanted
  faults.length = 0;
});

async function standing(): Promise<unknown> {
  const [runs, agents, tokens] = await Promise.all([
    ui.client.runs.list({ limit: 1000 }),
    ui.client.agents.list(),
    ui.client.tokens.list(),
  ]);
  return [runs.items.length, agents.items.length, tokens.items.length];
}

/** Runs in the foreign page. */
async function attack(address: string): Promise<Record<string, string>> {
  const tried = (work: Promise<unknown>): Promise<string> =>
    work.then(
      (value) => `got ${String(value)}`,
      () => "refused",
    );
  const asked = (init: RequestInit, path = "/runs") =>
    fetch(address + path, { credentials: "include", ...init }).then(async (answer) =>
      answer.type === "opaque" ? Promise.reject(new Error("opaque")) : answer.text(),
    );
  const element = (tag: "img" | "script", path: string) =>
    new Promise((resolve, reject) => {
      const one = Object.assign(document.createElement(tag), { src: address + path, onload: resolve, onerror: reject });
      document.body.append(one);
    });
  const stream = new Promise((resolve, reject) => {
    const source = new EventSource(`${address}/events`, { withCredentials: true });
    source.addEventListener("message", resolve);
    source.addEventListener("open", resolve);
    source.addEventListener("error", () => (source.close(), reject(new Error("refused"))));
  });
  const frame = Object.assign(document.createElement("iframe"), { src: `${address}/ui/` });
  const framed = new Promise((resolve) => frame.addEventListener("load", resolve));
  document.body.append(frame);
  await framed;
  const body = JSON.stringify({ agent_name: "echo", parameters: { message: "x" } });
  const json = { "content-type": "application/json" };
  const other = window.open(`${address}/ui/`);
  const inside = new Promise((resolve, reject) => {
    // until it is there, an empty page of our own is
    const look = setInterval(() => {
      try {
        const shown = other?.document.body?.innerText ?? "";
        if (shown !== "") resolve(shown);
      } catch (error) {
        clearInterval(look);
        reject(error as Error);
      }
    }, 20);
  });
  const found = {
    read: await tried(asked({})),
    "read with a simple header": await tried(asked({ headers: { accept: "application/json" } }, "/tokens")),
    stream: await tried(stream),
    image: await tried(element("img", "/runs")),
    script: await tried(element("script", "/runs")),
    write: await tried(asked({ method: "POST", headers: json, body })),
    "write as text": (await tried(asked({ method: "POST", mode: "no-cors", body }))).replace(
      "refused",
      "opaque or refused",
    ),
    delete: await tried(asked({ method: "DELETE" }, "/agents/echo")),
    "look into a window": await tried(inside),
  };
  other?.close();
  return found;
}
