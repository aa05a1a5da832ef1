import { findLocal } from "../local.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { readListen, serveStateDirectory, serveOptions } from "./serve-state-directory.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";

export const coordinatorCommand: CommandSpec = {
  name: "coordinator",
  summary: "keeps the journal and hands out runs, over HTTP",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover coordinator", "on 127.0.0.1:8765; its admin token is in the state directory"],
    ["drover coordinator --host 0.0.0.0 --public-url https://drover.example", "for other machines, behind TLS"],
  ],
  options: serveOptions,
  run: serve,
};

async function serve(input: CommandInput): Promise<number> {
  const local = await resolveTrust(input, await findLocal(input.env, input.cwd), { agents: true });
  const coordinator = await serveStateDirectory(input, local, readListen(input, "coordinator"));
  coordinator.announce();
  let forced = false;
  const ended = waitForShutdown({
    gently: coordinator.stop,
    // what was answered is stored, and what was not is asked for again: there is nothing that it would have to wait for
    atOnce: async () => void (forced = true),
    ended: new Promise(() => undefined),
  });
  // who reads it may tell it to end right away
  if (!input.options["quiet"]) write(2, `Serving ${coordinator.url} for ${coordinator.store.engine.name}\n`);
  await ended;
  return forced ? 130 : 0;
}
