import { dice } from "../test/fuzz.ts";
import { type RawAnswer, rawCall } from "../test/http-call.ts";
import { type ApiDocument, openApiCalls } from "../test/openapi-calls.ts";
import { errorCodes } from "../src/model/errors.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace } from "./place.ts";
import { stallMs, stallsOf } from "./stalls.ts";
import { each, upTo } from "./wait.ts";

/** S3: requests made from the OpenAPI document, right and wrong, and bombs. Refused by name, and nobody else waits. */
export async function fuzz({ requests }: { requests: number }, tools: Tools): Promise<Finding> {
  return inPlace(tools, { pollHoldMs: 20 }, async (place) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const headers = { authorization: `Bearer ${place.token}`, "content-type": "application/json" };
    // written by the coordinator itself
    const document = JSON.parse((await rawCall(place.url, { path: "/openapi.json" })).text) as ApiDocument;
    // a whole copy of the database with each: measured elsewhere
    const calls = openApiCalls(document, headers, dice(seed), ["/backup"]);
    const broken: string[] = calls.operations > 30 ? [] : [`the document has ${calls.operations} operations only`];
    const seen = new Map<string, number>();
    const bombs = makeBombs();
    let done = 0;
    await each(upTo(requests), 20, async (at) => {
      const body = at % 500 === 0 ? bombs[(at / 500) % bombs.length] : undefined;
      const call = body === undefined ? calls.next() : { method: "POST", path: "/runs", headers, body };
      const answer = await rawCall(place.url, { ...call, headOnly: true });
      seen.set(`${Math.floor(answer.status / 100)}xx`, (seen.get(`${Math.floor(answer.status / 100)}xx`) ?? 0) + 1);
      const fault = faultOf(answer, call.path);
      if (fault)
        broken.push(`seed ${seed}: ${call.method} ${call.path} ${String(call.body ?? "").slice(0, 300)} -> ${fault}`);
      done += 1;
      if (done % 10_000 === 0) tools.progress(`${done} of ${requests} requests`);
    });
    const { longest, withOthers, defects } = await stallsOf(place);
    broken.push(...defects);
    const late = longest >= stallMs ? [`the event loop stood still for ${longest} ms, with a core to run on`] : [];
    return {
      seen: {
        requests: done,
        ...Object.fromEntries([...seen].sort()),
        "5xx": seen.get("5xx") ?? 0,
        "longest stall ms": longest,
        "with waiting for a core": withOthers,
      },
      broken,
      late,
    };
  });
}

function faultOf({ status, headers, text }: RawAnswer, path: string): string | null {
  if (status >= 500) return `${status} ${text.slice(0, 300)}`;
  if (status < 400) return null;
  // what reaches the protocol there is refused in its own form
  if (path === "/mcp" && headers["content-type"] === "application/json") return null;
  if (headers["content-type"] !== "application/problem+json") return `${status} as ${String(headers["content-type"])}`;
  // checked by the very next line
  const { code } = JSON.parse(text) as { code: string };
  return Object.hasOwn(errorCodes, code) ? null : `the unknown code ${code}`;
}

/** Small requests that would be much work for a careless reader, and large ones. */
function makeBombs(): string[] {
  const schema = (parameters: unknown) => JSON.stringify({ agent_name: "nobody", parameters });
  return [
    "[".repeat(400_000) + "]".repeat(400_000),
    '{"a":'.repeat(150_000) + "1" + "}".repeat(150_000),
    schema({ text: "a".repeat(900_000) }),
    schema(Object.fromEntries([...upTo(20_000)].map((at) => [`key${at}`, at]))),
    schema({ list: [...upTo(100_000)] }),
    schema({ text: "\u0000".repeat(100_000) }),
    JSON.stringify({ agent_name: "x", prompt: "x".repeat(3_000_000) }),
    `{"agent_name":"x","priority":${"9".repeat(500_000)}}`,
    '{"agent_name":"x","parameters":{"__proto__":{"a":1}}}',
  ];
}
