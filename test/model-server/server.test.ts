import { afterEach, describe, expect, it } from "vitest";
import type { Script } from "./script.ts";
import { type ModelServer, startModelServer } from "./server.ts";

let server: ModelServer;
afterEach(() => server.stop());

const usage = { input_tokens: 7, output_tokens: 3 };
const script: Script = [
  {
    when: "make a file",
    turns: [
      { text: "Writing.", tool: { name: "write_file", input: { path: "a.txt", content: "x" } }, usage },
      { text: "It is there.", usage },
    ],
  },
  { when: /^hello/, turns: [{ text: "Hello to you, whoever you are.", usage }] },
];
const start = async (rules: Script = script): Promise<void> => void (server = await startModelServer(rules));

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${server.url}${path}`, { method: "POST", body: JSON.stringify(body), headers });
// Each test knows what the JSON contains.
const json = async (path: string, body: unknown) => JSON.parse(await (await post(path, body)).text());
const events = async (path: string, body: unknown) =>
  (await (await post(path, body)).text())
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));

const user = (content: string) => ({ role: "user", content });
const messages = "/v1/messages";
const claudeTools = [{ name: "Bash" }, { name: "Write" }];

describe("each dialect", () => {
  it("anthropic: sends text in several deltas, then a tool call with the client's tool name", async () => {
    await start();
    const streamed = await events(messages, { model: "m", stream: true, messages: [user("hello")] });
    const deltas = streamed.filter(({ type }) => type === "content_block_delta");
    expect(deltas.length).toBeGreaterThan(2);
    expect(deltas.map(({ delta }) => delta.text).join("")).toBe("Hello to you, whoever you are.");
    expect(streamed.at(-2)).toMatchObject({ usage: { output_tokens: 3 }, delta: { stop_reason: "end_turn" } });
    expect(await json(messages, { model: "m", tools: claudeTools, messages: [user("make a file")] })).toMatchObject({
      model: "m",
      stop_reason: "tool_use",
      usage,
      content: [{ text: "Writing." }, { name: "Write", input: { file_path: "a.txt", content: "x" } }],
    });
  });

  it("responses: sends a patch if the client takes one, otherwise a shell command", async () => {
    await start();
    const ask = { model: "m", stream: true, input: [{ type: "message", ...user("make a file") }] };
    const custom = await events("/v1/responses", { ...ask, tools: [{ type: "custom", name: "apply_patch" }] });
    const done = custom.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    expect(done[1]).toMatchObject({ type: "custom_tool_call", name: "apply_patch" });
    expect(done[1].input).toContain("*** Add File: a.txt\n+x\n");
    expect(custom.at(-1)).toMatchObject({ type: "response.completed", response: { usage } });
    const shell = await events("/v1/responses", { ...ask, tools: [{ type: "function", name: "exec_command" }] });
    const { item } = shell.findLast(({ type }) => type === "response.output_item.done");
    expect(JSON.parse(item.arguments)).toEqual({ cmd: "printf %s 'x' > 'a.txt'" });
  });

  it("chat: answers streamed and unstreamed", async () => {
    await start();
    const ask = { model: "m", messages: [{ role: "system", content: "be brief" }, user("hello")] };
    expect(await json("/v1/chat/completions", ask)).toMatchObject({
      choices: [{ message: { content: "Hello to you, whoever you are." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    });
    const chunks = await events("/v1/chat/completions", { ...ask, stream: true });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(
      "Hello to you, whoever you are.",
    );
    const tools = [{ type: "function", function: { name: "bash" } }];
    const calls = await events("/v1/chat/completions", {
      ...ask,
      stream: true,
      tools,
      messages: [user("make a file")],
    });
    const parts = calls.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(parts[0]).toMatchObject({ function: { name: "bash" } });
    expect(JSON.parse(parts.map((part) => part.function.arguments).join(""))).toMatchObject({
      command: "printf %s 'x' > 'a.txt'",
    });
  });

  it("gemini: answers streamed and unstreamed", async () => {
    await start();
    const contents = [{ role: "user", parts: [{ text: "make a file" }] }];
    const tools = [{ functionDeclarations: [{ name: "write_file" }] }];
    const path = "/v1beta/models/gemini-x:generateContent";
    expect(await json(path, { contents, tools })).toMatchObject({
      candidates: [
        { content: { parts: [{ text: "Writing." }, { functionCall: { name: "write_file" } }] }, finishReason: "STOP" },
      ],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3 },
    });
    const chunks = await events("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", { contents, tools });
    expect(chunks.length).toBeGreaterThan(3);
    expect(server.requests.map(({ model }) => model)).toEqual(["gemini-x", "gemini-x"]);
  });
});

describe("the script", () => {
  it("matches the end of the last user text, ignores what clients add, and counts tool results", async () => {
    await start();
    const prompt = user("<system-reminder>hello\nreminders</system-reminder>\nplease make a file");
    const call = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "Write", input: { a: 1 } }] };
    const result = {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "1", content: [{ type: "text", text: "written" }] },
        { type: "text", text: "<system-reminder>go on</system-reminder>" },
      ],
    };
    const ask = { model: "m", tools: claudeTools, messages: [prompt, call, result] };
    expect(await json(messages, ask)).toMatchObject({ content: [{ text: "It is there." }], stop_reason: "end_turn" });
    expect(server.requests[0]).toMatchObject({ dialect: "anthropic", answered: "turn" });
    expect(server.requests[0]?.messages.slice(2)).toMatchObject([
      { role: "assistant", tool_calls: [{ name: "Write", input: { a: 1 } }] },
      { role: "user", tool_results: ["written"] },
    ]);
  });

  it("refuses a request that no rule matches, and answers a client's side calls without using a turn", async () => {
    await start();
    const unknown = await post(messages, { model: "m", tools: claudeTools, messages: [user("something else")] });
    expect([unknown.status, await unknown.text()]).toEqual([400, expect.stringContaining("something else")]);
    const schema = { type: "object", properties: { title: { type: "string" }, kind: { enum: ["a", "b"] } } };
    const side = { model: "m", messages: [user("hello")], output_config: { format: { type: "json_schema", schema } } };
    const { content } = await json(messages, side);
    expect(JSON.parse(content[0].text)).toEqual({ title: "ok", kind: "a" });
    expect((await json(messages, { model: "m", messages: [user("Summarize this")] })).content[0].text).toBe("ok");
    expect(server.requests.map(({ answered }) => answered)).toEqual(["unknown", "side", "side"]);
  });

  it("says which tool a client lacks, unless the call is exact", async () => {
    const tool = { name: "write_file", input: { path: "a" } };
    await start([
      { when: "lacks", turns: [{ tool }] },
      { when: "exact", turns: [{ tool: { ...tool, exact: true } }] },
    ]);
    const tools = [{ name: "Grep" }];
    expect(await json(messages, { tools, messages: [user("lacks")] })).toMatchObject({
      error: { message: "No tool for write_file is offered: Grep." },
    });
    expect(await json(messages, { tools, messages: [user("exact")] })).toMatchObject({
      content: [{ name: "write_file", input: { path: "a" } }],
    });
  });
});

describe("bad answers", () => {
  it("are errors in the dialect's format, as often as the script says", async () => {
    await start([
      {
        when: "x",
        turns: [{ error: { status: 429, type: "rate_limit_error", message: "slow down" }, times: 2 }, { text: "ok" }],
      },
    ]);
    const ask = () => post(messages, { model: "m", messages: [user("x")] });
    const first = await ask();
    expect([first.status, await first.json()]).toEqual([
      429,
      { type: "error", error: { type: "rate_limit_error", message: "slow down" } },
    ]);
    expect([(await ask()).status, (await ask()).status, (await ask()).status]).toEqual([429, 200, 200]);
  });

  it.each([
    ["anthropic", messages, { messages: [user("stall")] }],
    ["responses", "/v1/responses", { input: [{ type: "message", ...user("stall") }] }],
    ["chat", "/v1/chat/completions", { messages: [user("stall")] }],
    ["converse", "/model/m/converse-stream", { messages: [{ role: "user", content: [{ text: "stall" }] }] }],
  ])(
    "stall in the middle of a tool's input in the dialect %s, until the client disconnects",
    async (_name, path, body) => {
      const input = { path: "beginning-of-the-input/and/its/end" };
      const tool = { name: "file_read", input, exact: true as const };
      await start([{ when: "stall", turns: [{ tool, stream_fault: "stalls" }] }]);
      const abort = new AbortController();
      const response = await fetch(`${server.url}${path}`, {
        method: "POST",
        body: JSON.stringify({ model: "m", stream: true, ...body }),
        signal: abort.signal,
      });
      let received = "";
      const reading = (async () => {
        for await (const chunk of response.body!) received += Buffer.from(chunk).toString("latin1");
      })();
      await expect.poll(() => server.stalledCount()).toBe(1);
      await expect.poll(() => received).toContain("path");
      abort.abort();
      await expect(reading).rejects.toThrow();
      await expect.poll(() => server.stalledCount()).toBe(0);
      expect(received).not.toContain("/end");
    },
  );

  it("hang, break off or close the connection, and stop ends them all", async () => {
    await start([
      { when: "cut", turns: [{ text: "long ".repeat(100), cut_after_bytes: 300 }] },
      { when: "close", turns: [{ close: true }] },
      { when: "hang", turns: [{ hang: true }] },
      { when: "slow", turns: [{ text: "slow", slow_ms_per_chunk: 1e6 }] },
    ]);
    const ask = (text: string) => post(messages, { stream: true, messages: [user(text)] });
    await expect((await ask("cut")).text()).rejects.toThrow();
    await expect(ask("close")).rejects.toThrow();
    const hanging = [ask("hang"), ask("slow").then((response) => response.text())].map((each) =>
      each.then(
        () => "answered",
        () => "cut",
      ),
    );
    await expect.poll(() => server.requests.length).toBe(4);
    await Promise.all([server.stop(), server.stop()]);
    expect(await Promise.all(hanging)).toEqual(["cut", "cut"]);
  });
});

it("answers clients' other requests, and records no secrets", async () => {
  await start();
  expect((await fetch(server.url, { method: "HEAD" })).status).toBe(200);
  expect((await fetch(`${server.url}/api/hello`)).status).toBe(200);
  expect(await json("/v1/messages/count_tokens", { messages: [] })).toEqual({ input_tokens: expect.any(Number) });
  expect(await json("/v1beta/models/g:countTokens", {})).toEqual({ totalTokens: expect.any(Number) });
  expect((await fetch(`${server.url}/elsewhere`)).status).toBe(404);
  expect(server.others).toEqual([
    "HEAD /",
    "GET /api/hello",
    "POST /v1/messages/count_tokens",
    "POST /v1beta/models/g:countTokens",
    "GET /elsewhere",
  ]);
  const secrets = {
    authorization: "Bearer s3cret",
    "x-api-key": "s3cret",
    "x-goog-api-key": "s3cret",
    "user-agent": "t",
  };
  await post("/v1/messages?key=s3cret", { messages: [user("hello")] }, secrets);
  expect(JSON.stringify(server.requests)).not.toContain("s3cret");
  expect(server.requests[0]?.headers).toMatchObject({ "x-api-key": "(set)", "user-agent": "t" });
});
