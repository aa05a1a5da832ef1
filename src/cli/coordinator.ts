import { findProject } from "../local.ts";
import { tryWrite, write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { readListenAddress, serveStateDirectory, serveOptions } from "./serve-state-directory.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { waitForShutdown } from "./wait-for-shutdown.ts";

export const coordinatorCommand: CommandSpec = {
  name: "coordinator",
  summary: "serve the API over HTTP and dispatch runs to runners",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover coordinator", "on 127.0.0.1:8765; the admin token is in the state directory"],
    ["drover coordinator --host 0.0.0.0 --public-url https://drover.example", "for other machines, behind TLS"],
  ],
  options: serveOptions,
  run: serve,
};

async function serve(input: CommandInput): Promise<number> {
  const project = await resolveTrust(input, await findProject(input.env, input.cwd), { agents: true });
  const coordinator = await serveStateDirectory(input, project, readListenAddress(input, "coordinator"));
  coordinator.announce();
  let isForced = false;
  // Handle signals before the message below is printed: a program that reads it may send a signal at once.
  const shutdown = waitForShutdown({
    graceful() {
      if (!input.options["quiet"]) tryWrite(2, "Stopping. Press Ctrl-C again to stop at once.\n");
      return coordinator.stop();
    },
    // It is safe not to wait: every request with a response is stored, and clients retry the others.
    immediate: async () => void (isForced = true),
    done: new Promise(() => undefined),
  });
  if (!input.options["quiet"]) write(2, `Serving ${coordinator.url} for ${coordinator.store.engine.name}\n`);
  await shutdown;
  if (!input.options["quiet"]) tryWrite(2, "Stopped.\n");
  return isForced ? 130 : 0;
}
