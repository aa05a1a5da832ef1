import { hasEnded } from "../model/states.ts";
import type { StoredEvent } from "../model/event.ts";
import { describeEvent, toOutput } from "./event-line.ts";
import { findRun } from "./find-id.ts";
import { readAllEvents, withRecord } from "./with-record.ts";
import { isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { formatDuration } from "./table.ts";
import { createStyleFor } from "./terminal/style.ts";

export const runsEvents: CommandSpec = {
  name: "runs events",
  summary: "show the events of a run, and follow them while it is active",
  placeholders: "RUN",
  arity: [1, 1],
  examples: [
    ["drover runs events last", "all events so far, then new ones as they arrive"],
    ["drover runs events 5c20e9d4 --json --after 120", "as JSON lines, after event 120"],
  ],
  options: {
    after: { placeholder: "N", description: "start after this event number" },
    "no-follow": { description: "do not wait for new events" },
  },
  run: showEvents,
};

async function showEvents(input: CommandInput): Promise<number> {
  const id = input.positionals[0]!;
  const after = Number(readText(input.options, "after") ?? "0");
  if (!Number.isInteger(after) || after < 0)
    throw usageError("--after must be an event number.", "runs events", "--after");
  const isShown = await withRecord(input, async (client, hasCoordinator) => {
    const run = await findRun(client, id);
    const show = input.options["json"]
      ? (event: StoredEvent): void => write(1, toJsonLine(event))
      : (event: StoredEvent): void => showEvent(event, run.created_at);
    if (hasCoordinator && !hasEnded(run.status) && !input.options["no-follow"]) {
      for await (const event of client.runs.follow(run.run_id, { after })) show(event);
    } else {
      for await (const event of readAllEvents(client, run.run_id, after)) show(event);
    }
    return true;
  });
  return isShown ? 0 : 1;
}

function showEvent(event: StoredEvent, createdAt: string): void {
  const output = toOutput(event);
  const time = formatEventTime(event.at, createdAt);
  const streamSign = output?.stream === "stderr" ? "!" : " ";
  const lines = output ? output.bytes.toString("utf8") : (describeEvent(event) ?? "");
  const start = `${String(event.seq).padStart(6)}  ${time} ${streamSign} `;
  const line = lines.replace(/\n$/, "").replaceAll("\n", `\n${" ".repeat(start.length)}`);
  const style = createStyleFor(1, process.env);
  write(1, `${style.dim(start)}${line}\n`);
}

/** Formats a time: on a terminal as the time since the run was created, otherwise unchanged. */
function formatEventTime(at: string, createdAt: string): string {
  if (!isTerminal(1)) return at;
  // The runner's clock may be behind the coordinator's.
  return `+${formatDuration(Math.max(0, Date.parse(at) - Date.parse(createdAt)))}`.padStart(8);
}
