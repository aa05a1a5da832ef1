import { type RawAnswer, rawCall } from "../test/http-call.ts";
import type { ApiDocument } from "../test/openapi-calls.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";
import { each } from "./wait.ts";

interface Try {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

/** S5: every route, asked as a page of somebody else would make a browser ask, with a token that may do everything. */
export async function strangeCallers({ variants }: { variants: number }, tools: Tools): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    const broken: string[] = [];
    let asked = 0;
    const tries = [...everyTry(await routesOf(place), place, variants)];
    await each(tries, 20, async (one) => {
      const answer = await rawCall(place.url, { ...one, headOnly: true });
      asked += 1;
      if (!isRefused(answer)) broken.push(`${one.method} ${one.path} ${JSON.stringify(one.headers)}: ${answer.status}`);
      if (Object.keys(answer.headers).some((name) => name.startsWith("access-control")))
        broken.push(`${one.method} ${one.path}: ${JSON.stringify(answer.headers)}`);
      if (asked % 10_000 === 0) tools.progress(`${asked} of ${tries.length} requests`);
    });
    const { items } = await place.client.runs.list();
    if (items.length > 0) broken.push(`${items.length} runs were made`);
    return { seen: { requests: asked, accepted: broken.length, "runs made": items.length }, broken, late: [] };
  });
}

/** 400: what was given is no host name at all. 415: a form, which no page may send as JSON without being asked first. */
function isRefused({ status }: RawAnswer): boolean {
  return status === 403 || status === 400 || status === 415;
}

async function routesOf({ url }: Place): Promise<{ method: string; path: string }[]> {
  // written by the coordinator itself
  const document = JSON.parse((await rawCall(url, { path: "/openapi.json" })).text) as ApiDocument;
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, "x") })),
  );
}

function* everyTry(routes: { method: string; path: string }[], { token, url }: Place, variants: number): Iterable<Try> {
  const authorization = `Bearer ${token}`;
  const own = new URL(url).host;
  for (const route of routes) {
    for (const accept of ["application/json", "text/event-stream"]) {
      for (const host of strangeHosts(own, variants)) yield { ...route, headers: { authorization, accept, host } };
      for (const origin of strangeOrigins(own, variants))
        yield { ...route, headers: { authorization, accept, origin } };
    }
  }
  const body = '{"agent_name":"echo","parameters":{}}';
  for (const type of ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]) {
    const headers = {
      authorization,
      "content-type": type,
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "no-cors",
    };
    yield { method: "POST", path: "/runs", headers, body };
    yield { method: "POST", path: "/runs", headers: { authorization, "content-type": type }, body };
  }
}

/** Names that a careless comparison takes for ours: by prefix, suffix, part, case, encoding, other loopbacks. */
function* strangeHosts(own: string, variants: number): Iterable<string> {
  const [name, port] = [own.slice(0, own.lastIndexOf(":")), own.slice(own.lastIndexOf(":"))];
  yield* ["evil.example", "0.0.0.0", "169.254.169.254", "[::ffff:127.0.0.1]", `${name}@evil.example`];
  yield* [`evil.example${port}`, `${name}.evil.example${port}`, `localhost.evil.example${port}`, `0x7f.1${port}`];
  yield* [`${name}%00.evil.example`, `2130706433${port}`, `evil.example#${own}`, `evil.example/${own}`, `${name}..`];
  for (let at = 0; at < variants; at += 1) {
    yield `host${at}.evil.example${port}`;
    yield `${name}.${at}.evil.example`;
    yield `10.${at % 256}.0.1${port}`;
  }
}

function* strangeOrigins(own: string, variants: number): Iterable<string> {
  yield* ["null", "", "file://", "https://evil.example", `http://evil.example@${own}`, `https://${own}`];
  yield* [`http://${own}.evil.example`, `http://evil.example/${own}`, `chrome-extension://${own}`, `http://${own}0`];
  for (let at = 0; at < variants; at += 1) {
    yield `http://127.0.0.1:${at + 1}`;
    yield `http://host${at}.evil.example${own.slice(own.lastIndexOf(":"))}`;
  }
}
