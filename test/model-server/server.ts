import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sendError, sendReply } from "./answer.ts";
import { choose, type Chosen } from "./choose.ts";
import { anthropic } from "./dialects/anthropic.ts";
import { chat } from "./dialects/chat.ts";
import { converse } from "./dialects/converse.ts";
import { gemini } from "./dialects/gemini.ts";
import { responses } from "./dialects/responses.ts";
import { type Fields, parseOrNull } from "./json.ts";
import type { Answer, ModelRequest, Dialect, DialectName, Message, Reply, Script, Turn } from "./script.ts";
import { createSmallestValue } from "./side-answer.ts";
import { translate } from "./tools.ts";

/** A received model request. */
export interface Received {
  dialect: DialectName;
  path: string;
  model: string;
  messages: Message[];
  /** "unknown" means that no rule matched and the request was refused. */
  answered: Chosen["kind"];
  body: Fields;
  /** Secret values are replaced with `(set)`. */
  headers: Readonly<Record<string, string>>;
}

export interface ModelServer {
  /** Without a path or trailing slash. */
  url: string;
  requests: Received[];
  /** All other requests, as `METHOD /path`. */
  others: string[];
  /** How many clients wait for an answer that hangs, or for the rest of one that stalls. */
  stalledCount(): number;
  /** Idempotent. Aborts requests in flight. */
  stop(): Promise<void>;
}

const routes: readonly (readonly [RegExp, Dialect])[] = [
  [/^\/v1\/messages$/, anthropic],
  [/^(?:\/v1)?\/responses$/, responses],
  [/^(?:\/v1)?\/chat\/completions$/, chat],
  [/^\/v1(?:beta|alpha)?\/models\/[^/:]+:(?:stream)?[gG]enerateContent$/, gemini],
  [/^\/model\/[^/]+\/converse-stream$/, converse],
];

/** Starts a scripted model server on a free local port. */
export async function startModelServer(script: Script): Promise<ModelServer> {
  const requests: Received[] = [];
  const others: string[] = [];
  const stalledResponses = new Set<ServerResponse>();
  const broken = new Map<string, number>();
  const stopController = new AbortController();
  const server = createServer((request, response) => {
    // A client may disconnect in the middle.
    response.on("error", () => response.destroy());
    void handle(request, response).catch((error: unknown) => {
      if (!stopController.signal.aborted) others.push(`DEFECT ${String(error)}`);
      response.destroy();
    });
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", "http://model").pathname;
    const text = await readBody(request);
    const dialect = request.method === "POST" ? routes.find(([pattern]) => pattern.test(path))?.[1] : undefined;
    if (!dialect) {
      others.push(`${request.method} ${path}`);
      return answerOther(path, text, response);
    }
    const body = parseOrNull(text);
    const modelRequest = dialect.read(body, path);
    const key = (turn: Turn): string => JSON.stringify([turn, modelRequest.messages]);
    const chosen = choose(script, modelRequest, (turn) => broken.get(key(turn)) ?? 0);
    const { model, messages } = modelRequest;
    const headers = removeSecrets(request.headers);
    requests.push({ dialect: dialect.name, path, model, messages, answered: chosen.kind, body, headers });
    if (chosen.kind === "turn" && fails(chosen.turn))
      broken.set(key(chosen.turn), (broken.get(key(chosen.turn)) ?? 0) + 1);
    await answer(chosen, modelRequest, dialect, response, requests.length, text.length);
  }

  async function answer(
    chosen: Chosen,
    modelRequest: ModelRequest,
    dialect: Dialect,
    response: ServerResponse,
    count: number,
    size: number,
  ): Promise<void> {
    const target = { response, dialect, stream: modelRequest.stream };
    if (chosen.kind === "unknown") {
      const message = `No rule of the script matches ${JSON.stringify(chosen.text.slice(-200))}.`;
      return sendError(target, { status: 400, type: "invalid_request_error", message });
    }
    const turn: Turn = chosen.kind === "side" ? { text: createSideText(modelRequest) } : chosen.turn;
    if ("hang" in turn) return addStalled(response);
    if ("close" in turn) return void response.destroy();
    if ("error" in turn) return sendError(target, turn.error);
    if ("web_page" in turn)
      return void response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in</html>");
    const reply = createReply(turn, modelRequest, count, size);
    if (typeof reply === "string")
      return sendError(target, { status: 400, type: "invalid_request_error", message: reply });
    await sendReply(target, reply, turn, stopController.signal);
    if (turn.stream_fault === "stalls") addStalled(response);
  }

  function addStalled(response: ServerResponse): void {
    if (response.closed) return;
    stalledResponses.add(response);
    response.once("close", () => stalledResponses.delete(response));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is never a string.
  const { port } = server.address() as AddressInfo;
  let stopping: Promise<void> | null = null;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    others,
    stalledCount: () => stalledResponses.size,
    stop() {
      stopController.abort();
      stopping ??= new Promise((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return stopping;
    },
  };
}

function createReply(turn: Answer, modelRequest: ModelRequest, count: number, size: number): Reply | string {
  const requestedCalls = [...(turn.tool ? [turn.tool] : []), ...(turn.tools ?? [])];
  const calls: Reply["calls"][number][] = [];
  for (const [index, call] of requestedCalls.entries()) {
    const translated = translate(call, modelRequest.tools);
    if (!translated)
      return `No tool for ${call.name} is offered: ${modelRequest.tools.map(({ name }) => name).join(", ")}.`;
    calls.push({ ...translated, id: `call_${count}_${index + 1}` });
  }
  const text = turn.text ?? "";
  const usage = turn.usage ?? { input_tokens: Math.ceil(size / 4), output_tokens: 10 + text.length };
  return { model: modelRequest.model, text, calls, usage, reachedLimit: turn.token_limit === true };
}

const fails = (turn: Turn): boolean =>
  "error" in turn ||
  "hang" in turn ||
  "close" in turn ||
  "web_page" in turn ||
  turn.cut_after_bytes !== undefined ||
  turn.stream_fault !== undefined;

const createSideText = ({ schema }: ModelRequest): string =>
  schema === undefined ? "ok" : JSON.stringify(createSmallestValue(schema));

/** Answers clients' other requests: health checks and token counts. */
function answerOther(path: string, text: string, response: ServerResponse): void {
  const isHealthCheck = ["/", "/api/hello", "/api/version"].includes(path);
  const tokens = Math.ceil(text.length / 4);
  const counted = path.endsWith("/count_tokens")
    ? { input_tokens: tokens }
    : path.endsWith(":countTokens")
      ? { totalTokens: tokens }
      : null;
  response.writeHead(isHealthCheck || counted ? 200 : 404, { "content-type": "application/json" });
  response.end(JSON.stringify(counted ?? (isHealthCheck ? {} : { error: { message: `Nothing is at ${path}.` } })));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  // Without an encoding, the stream yields buffers.
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function removeSecrets(headers: IncomingMessage["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      /key|authorization|cookie|token/.test(name) ? "(set)" : String(value),
    ]),
  );
}
