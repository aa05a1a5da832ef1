import { isTerminal as isFinal } from "../model/states.ts";
import type { StoredEvent } from "../model/event.ts";
import { eventLine, toOutput } from "./event-line.ts";
import { findRun } from "./find-id.ts";
import { readAllEvents, withHistory } from "./history.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";

export const runsEvents: CommandSpec = {
  name: "runs events",
  summary: "show the events of a run, and follow them while it is active",
  takes: "RUN",
  arity: [1, 1],
  examples: [
    ["drover runs events 019a3f", "all events so far, then new ones as they arrive"],
    ["drover runs events 019a3f --json --after 120", "as JSON lines, after event 120"],
  ],
  options: {
    after: { value: "N", about: "start after this event number" },
    "no-follow": { about: "do not wait for new events" },
  },
  run: showEvents,
};

async function showEvents(input: CommandInput): Promise<number> {
  const id = input.positionals[0]!;
  const after = Number(text(input.options, "after") ?? "0");
  if (!Number.isInteger(after) || after < 0) throw usage("--after must be an event number.", "runs events", "--after");
  const show = (event: StoredEvent): void => showEvent(event, input.options["json"] === true);
  const shown = await withHistory(input, async (client, isLive) => {
    const run = await findRun(client, id);
    if (isLive && !isFinal(run.status) && !input.options["no-follow"]) {
      for await (const event of client.runs.follow(run.run_id, { after })) show(event);
    } else {
      for await (const event of readAllEvents(client, run.run_id, after)) show(event);
    }
    return true;
  });
  return shown ? 0 : 1;
}

function showEvent(event: StoredEvent, json: boolean): void {
  if (json) return write(1, jsonLine(event));
  const output = toOutput(event);
  const lines = output ? output.bytes.toString("utf8") : (eventLine(event) ?? "");
  const line = lines.replace(/\n$/, "").replaceAll("\n", `\n${" ".repeat(12)}`);
  write(1, `${String(event.seq).padStart(6)} ${output?.stream === "stderr" ? "!" : " "}   ${line}\n`);
}
