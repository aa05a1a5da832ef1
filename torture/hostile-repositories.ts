import { mkdirSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type ClientName, clientNames, prepareClient } from "../test/clients/clients.ts";
import { canary, type Kind, plantTraps, traps } from "../test/e2e/agents/traps.ts";
import { type ModelServer, startModelServer } from "../test/model-server/server.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, waitFor } from "./wait.ts";

const writeDone = { tool: { name: "write_file", input: { path: "done.txt", content: "x" } } } as const;

interface Case {
  client: ClientName;
  kind: Kind;
  /** A single trap, or null for all of its kind. */
  name: string | null;
}

/**
 * S9: the real clients work in repositories with malicious hooks, servers, settings, addresses and instructions. None of
 * them runs, no other host is contacted, and the model reads none of the text.
 */
export async function hostileRepositories({ share }: { share: number }, tools: Tools): Promise<Finding> {
  const model = await startModelServer([{ when: "write here", turns: [writeDone, { text: "Done." }] }]);
  const trapServer = await openTrap();
  try {
    return await withTestbed(tools, null, async (testbed) => {
      const marks = join(testbed.directory, "trap-marks");
      mkdirSync(marks);
      for (const client of clientNames) await startClient(testbed, client, model, tools);
      const wrong: string[] = [];
      const cases = listCases().filter((_, index) => index % Math.ceil(1 / share) === 0);
      let ended = 0;
      await forEachConcurrently(cases, 3, async (item) => {
        const fault = await runIn(testbed, item, { marks, url: trapServer.url });
        if (fault) wrong.push(fault);
        ended += 1;
        if (ended % 10 === 0) tools.progress(`${ended} of ${cases.length} repositories`);
      });
      const triggeredTraps = readdirSync(marks);
      // Planted text appears in the prompt, planted keys in the headers.
      const read = model.requests.filter(
        ({ body, headers }) => JSON.stringify(body).includes(canary) || JSON.stringify(headers).includes("planted"),
      ).length;
      return {
        seen: {
          repositories: cases.length,
          traps: Object.values(traps).flatMap((kind) => Object.keys(kind)).length,
          "commands run": triggeredTraps.length,
          "asked elsewhere": trapServer.came(),
          "read by the model": read,
        },
        broken: [
          ...wrong,
          ...triggeredTraps.map((name) => `${name} ran`),
          ...(trapServer.came() === 0 ? [] : [`${trapServer.came()} connections went elsewhere`]),
          ...(read === 0 ? [] : [`the model read a repository's text ${read} times`]),
        ],
        late: [],
      };
    });
  } finally {
    await trapServer.close();
    await model.stop();
  }
}

function listCases(): Case[] {
  const kinds = Object.keys(traps) as Kind[]; // The object's own keys.
  return clientNames.flatMap((client) =>
    kinds.flatMap((kind) => [null, ...Object.keys(traps[kind])].map((name): Case => ({ client, kind, name }))),
  );
}

async function startClient(testbed: Testbed, client: ClientName, model: ModelServer, { root }: Tools): Promise<void> {
  const home = join(testbed.directory, `home-${client}`);
  mkdirSync(home);
  const directory = join(root, "test", "clients");
  const { bin, env } = prepareClient(client, { home, url: model.url, directory });
  await testbed.startRunner({
    name: client,
    slots: 2,
    tags: [client],
    profile: { type: client, timeout_seconds: 100 },
    env: { ...env, [`${client.toUpperCase()}_BIN`]: bin },
  });
  await testbed.client.agents.put(client, {
    type: "autonomous",
    executor: client,
    demands: { executor_type: client, tags: [client] },
  });
}

/** Returns a description of the failure, or null. */
async function runIn(
  { client: api, directory: parent }: Testbed,
  { client, kind, name }: Case,
  bait: { marks: string; url: string },
): Promise<string | null> {
  const directory = join(parent, `${client}-${kind}-${name ?? "all"}`);
  const repository = join(directory, "repository");
  plantTraps(
    [kind],
    {
      repository,
      mark: (mark) => `touch ${join(bait.marks, `${client}.${mark}`)}`,
      url: bait.url,
      secret: join(directory, "secret.txt"),
    },
    name,
  );
  const { run_id } = await api.submit({ agent_name: client, prompt: "write here", project_dir: repository });
  const run = await waitFor(
    async () => {
      const seen = await api.runs.get(run_id);
      return seen.finished_at === null ? null : seen;
    },
    200_000,
    100,
  );
  const files = (await api.runs.files(run_id)).items.map(({ path }) => path);
  if (run?.status === "completed" && files.join() === "done.txt") return null;
  return `${client} in a repository with ${name ?? kind}: ${run?.status} ${run?.error}, left ${files.join()}`;
}

/** A server that only a malicious repository leads to. */
async function openTrap(): Promise<{ url: string; came(): number; close(): Promise<unknown> }> {
  let requestCount = 0;
  const server = createServer((socket) => {
    requestCount += 1;
    socket.destroy();
  });
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  // A TCP server's address is never a string.
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    came: () => requestCount,
    close: () => new Promise((closed) => server.close(closed)),
  };
}
