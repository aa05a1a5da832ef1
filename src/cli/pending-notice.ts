import { HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { ApiClient } from "../wire/client.ts";
import { inProcessUrl } from "../wire/transport.ts";
import type { CommandInput } from "./options.ts";

/** How long a run may be pending before that is reported. Most runs start within this time. */
const pauseMs = 2000;

export interface PendingNotice {
  onEvent(stored: StoredEvent): void;
  close(): void;
}

type Reason = Awaited<ReturnType<ApiClient["runs"]["why"]>>["why"][number];

/** The reasons to report if the runner is in this process. Its absence is not reported, because it is about to start. */
const reasonsInProcess: ReadonlySet<string> = new Set(["session", "directory", "max_concurrent"]);

/**
 * Reports what a run waits for if it is still pending after 2 s, and again whenever that changes. With --json, reports only
 * that a nested run waits for a slot: the run that started it keeps its own slot, so the wait may never end.
 */
export function watchPending(
  client: ApiClient,
  run_id: string,
  { env, options }: CommandInput,
  print: (text: string) => void,
): PendingNotice | null {
  const isNested = Boolean(env["DROVER_NESTED_LOG"]);
  if (options["quiet"] || (options["json"] && !isNested)) return null;
  const isReported = ({ demand }: Reason): boolean =>
    options["json"] ? demand === "slots" : client.url !== inProcessUrl || reasonsInProcess.has(demand);
  let printedText = "";
  let timer: NodeJS.Timeout | null = null;
  const close = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
  };
  const start = (): void => {
    timer ??= setTimeout(() => void report(), pauseMs).unref();
  };
  const report = async (): Promise<void> => {
    const reasons = (await readReasons(client, run_id)).filter(isReported);
    // During the request, the run has started or this command has ended.
    if (timer === null) return;
    timer = null;
    const text = describeReasons(reasons, isNested);
    if (text !== "" && text !== printedText) {
      print(text);
      printedText = text;
    }
    start();
  };
  start();
  return {
    close,
    onEvent({ event }) {
      if (event.type !== "status") return;
      if (event.status === "pending") start();
      else close();
    },
  };
}

function describeReasons(reasons: readonly Reason[], isNested: boolean): string {
  const advice =
    isNested && reasons.some(({ demand }) => demand === "slots")
      ? "  The run that this command is part of keeps its own slot while it waits.\n  Raise the runner's slots with --slots, or with slots in its profile.\n"
      : "";
  return `${reasons.map(({ detail }) => `drover: waiting: ${detail}\n`).join("")}${advice}`;
}

async function readReasons(client: ApiClient, run_id: string): Promise<Reason[]> {
  try {
    return (await client.runs.why(run_id)).why;
  } catch (error) {
    // The notice is only a hint, so the run continues without it.
    if (error instanceof HostError || error instanceof RequestError) return [];
    throw error;
  }
}
