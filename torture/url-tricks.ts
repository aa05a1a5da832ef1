import type { LookupAddress } from "node:dns";
import { createAddressRules } from "../src/trigger/addresses.ts";
import { post } from "../src/trigger/post.ts";
import { startReceiver } from "../test/fixtures/trigger/receiver.ts";
import { literalTricks, nameTricks, systemNames } from "../test/fixtures/trigger/url-tricks.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed } from "./testbed.ts";
import { forEachConcurrently } from "./wait.ts";

const signal = new AbortController().signal;

/**
 * S8: webhooks to every forbidden address: registered at a coordinator, sent bypassing that check, and as redirect
 * targets. A server on loopback counts connections.
 */
export async function urlTricks({ rounds }: { rounds: number }, tools: Tools): Promise<Finding> {
  const target = await startReceiver();
  const redirecting = await startReceiver();
  try {
    return await withTestbed(tools, null, async ({ client }) => {
      const broken: string[] = [];
      const hidden = literalTricks.map((trick) => trick.replaceAll("PORT", String(target.port)));
      const names = [...Object.keys(nameTricks), ...systemNames].map((name) => `http://${name}:${target.port}/`);
      let registered = 0;
      for (const [index, url] of hidden.entries())
        await client.webhooks.add({ name: `trick-${index}`, url }).then(
          () => (registered += 1),
          () => undefined,
        );
      // Some hosts, such as those of ftp URLs, are plain names and can only be refused after resolution.
      let sent = 0;
      const tries = Array.from({ length: rounds }, () => [...hidden, ...names]).flat();
      await forEachConcurrently(tries, 20, async (text) => {
        if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) return;
        const url = new URL(text);
        sent += 1;
        const result = await send(url, createAddressRules([]), resolveTo(url.hostname));
        if ("status" in result) broken.push(`${text} was answered with ${result.status}`);
      });
      const allowed = createAddressRules(["redirecting.example"]);
      await forEachConcurrently(hidden, 20, async (location) => {
        redirecting.answer((_, response) => void response.writeHead(302, { location: encodeURI(location) }).end());
        const url = new URL(`http://redirecting.example:${redirecting.port}/`);
        const posted = await send(url, allowed, (_, done) => done(null, [{ address: "127.0.0.1", family: 4 }]));
        if (!("status" in posted) || posted.status !== 302)
          broken.push(`redirect to ${location}: ${JSON.stringify(posted)}`);
      });
      const connects = target.connections();
      if (connects > 0) broken.push(`${connects} connections to what is not allowed`);
      return { seen: { tricks: hidden.length + names.length, sent, registered, connects }, broken, late: [] };
    });
  } finally {
    await target.close();
    await redirecting.close();
  }
}

type Resolve = NonNullable<Parameters<typeof post>[1]["resolve"]>;

function send(url: URL, rules: ReturnType<typeof createAddressRules>, resolve: Resolve | undefined) {
  return post(url, { headers: {}, body: Buffer.from("{}"), rules, signal, ...(resolve ? { resolve } : {}) });
}

/** undefined means this machine's resolver. Unknown names resolve to nothing. */
function resolveTo(hostname: string): Resolve | undefined {
  if ((systemNames as readonly string[]).some((name) => name.toLowerCase() === hostname)) return undefined;
  const answer: ((lookups: number) => LookupAddress[]) | undefined = nameTricks[hostname];
  let lookups = 0;
  return (_, done) => done(null, answer?.(lookups++) ?? []);
}
