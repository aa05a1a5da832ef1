import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { ApiClient } from "../wire/client.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";

/** Most runs start within this time. */
const warnAfterMs = 2000;

export interface SlotWarning {
  event(stored: StoredEvent): void;
  close(): void;
}

/**
 * Warns once on stderr if a command inside a run waits for a child run that has no free slot. The parent keeps its own
 * slot while it waits, so the child may wait forever.
 */
export function warnAboutSlots(client: ApiClient, run_id: string, { env, options }: CommandInput): SlotWarning | null {
  if (!env["DROVER_NESTED_LOG"] || options["quiet"]) return null;
  const timer = setTimeout(() => void warn(client, run_id), warnAfterMs).unref();
  const close = (): void => clearTimeout(timer);
  return {
    close,
    event({ event }) {
      if (event.type === "status" && event.status !== "pending") close();
    },
  };
}

async function warn(client: ApiClient, run_id: string): Promise<void> {
  try {
    const { why } = await client.runs.why(run_id);
    const slots = why.find(({ demand }) => demand === "slots");
    if (slots === undefined) return;
    write(
      2,
      `drover: run ${run_id} waits for a free slot. ${slots.detail} The run that this command is part of keeps its own slot while it waits.\n  Raise the runner's slots with --slots, or with slots in its profile.\n`,
    );
  } catch (error) {
    // Only a hint: the run continues without it.
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
  }
}
