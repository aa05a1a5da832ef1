import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { ApiClient } from "../wire/client.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";

/** Most runs begin sooner. */
const patienceMs = 2000;

export interface Waiting {
  event(stored: StoredEvent): void;
  close(): void;
}

/**
 * For a command inside a run that waits for its child: the child may wait for the slot that its parent has, which never
 * becomes free. Says so once, on stderr.
 */
export function warnAboutSlots(client: ApiClient, run_id: string, { env, options }: CommandInput): Waiting | null {
  if (!env["DROVER_NESTED_LOG"] || options["quiet"]) return null;
  const timer = setTimeout(() => void tell(client, run_id), patienceMs).unref();
  const close = (): void => clearTimeout(timer);
  return {
    close,
    event({ event }) {
      if (event.type === "status" && event.status !== "pending") close();
    },
  };
}

async function tell(client: ApiClient, run_id: string): Promise<void> {
  try {
    const { why } = await client.runs.why(run_id);
    const slots = why.find(({ demand }) => demand === "slots");
    if (slots === undefined) return;
    write(
      2,
      `drover: run ${run_id} waits for a free slot. ${slots.detail} The run that this command is part of keeps its own slot while it waits.\n  Give the runner more slots: --slots, or slots in its profile.\n`,
    );
  } catch (error) {
    // a hint only: the run itself goes on
    if (!(error instanceof HostError || error instanceof RequestError)) throw error;
  }
}
