import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StoredEvent } from "../src/model/event.ts";
import { createClient } from "../src/wire/client.ts";
import { killOne } from "./coordinator-killed.ts";
import { waitUntilAnswering } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { readAllEvents, findLogFaults, getStdout } from "./record.ts";
import { startStorm } from "./storm.ts";
import { retryWhileUnreachable, countUpTo, waitFor } from "./wait.ts";

interface Size {
  bursts: number;
  readers: number;
  kills: number;
}

const runs = 3;
const linesInBurst = 50;

/**
 * Runs print while readers follow them and the feed of all runs through a balancer, so that most events are read from
 * another coordinator than they were written to. Coordinators are killed during this time and readers resume. Each reader
 * gets every event once, in order.
 */
export async function fleetReaders({ bursts, readers, kills }: Size, tools: Tools): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    const { client } = testbed;
    const script = join(testbed.directory, "scripts", "print.sh");
    writeFileSync(script, createPrintScript(bursts));
    chmodSync(script, 0o755);
    for (const index of countUpTo(runs))
      await testbed.startRunner({ name: `printer-${index}`, slots: 1, times: { pollPauseMs: 50 } });
    await retryWhileUnreachable(() => client.agents.put("print", { type: "procedural", command: script }));
    const submitted: string[] = [];
    for (const index of countUpTo(runs))
      submitted.push((await client.submit({ agent_name: "print", idempotency_key: `print ${index}` })).run_id);
    const leave = new AbortController();
    const cuts = { count: 0 };
    const ofRuns = [...countUpTo(readers)].map((index) => readRun(testbed, submitted[index % runs]!, cuts));
    const ofAll = [...countUpTo(readers)].map(() => readAll(testbed, leave.signal, cuts));
    const storm = startStorm(kills, () => killOne(testbed), tools.progress);
    await storm.over;
    await Promise.all(testbed.coordinators.map(({ url, child }) => waitUntilAnswering(url, child)));
    const logs = await Promise.all(ofRuns);
    const stored = await readAllEvents(client);
    const count = [...stored.values()].reduce((sum, log) => sum + log.length, 0);
    await waitFor(async () => (ofAll.every(({ seen }) => seen.length >= count) ? true : null), 120_000);
    leave.abort();
    await Promise.all(ofAll.map(({ ended }) => ended));
    return judge({ stored, logs, feeds: ofAll.map(({ seen }) => seen), bursts, cuts: cuts.count, kills });
  });
}

/** Prints in bursts, for long enough to be hit by a kill. */
function createPrintScript(bursts: number): string {
  return `#!/bin/sh
i=0
while [ $i -lt ${bursts} ]; do
  seq $((i * ${linesInBurst} + 1)) $((i * ${linesInBurst} + ${linesInBurst}))
  i=$((i + 1))
  sleep 0.05
done
`;
}

async function readRun({ url, token }: Testbed, run_id: string, cuts: { count: number }): Promise<StoredEvent[]> {
  const client = createClient({ url, token });
  const log: StoredEvent[] = [];
  for await (const event of client.runs.follow(run_id, { onReconnect: () => (cuts.count += 1) })) log.push(event);
  return log;
}

function readAll({ url, token }: Testbed, signal: AbortSignal, cuts: { count: number }) {
  const client = createClient({ url, token });
  const seen: StoredEvent[] = [];
  const follow = async (): Promise<void> => {
    for await (const event of client.follow({ signal, onReconnect: () => (cuts.count += 1) })) seen.push(event);
  };
  return { seen, ended: follow() };
}

interface Read {
  stored: ReadonlyMap<string, StoredEvent[]>;
  logs: readonly StoredEvent[][];
  feeds: readonly StoredEvent[][];
  bursts: number;
  cuts: number;
  kills: number;
}

function judge({ stored, logs, feeds, bursts, cuts, kills }: Read): Finding {
  const text = [...countUpTo(bursts * linesInBurst)].map((index) => `${index + 1}\n`).join("");
  const all = [...stored.values()].flat().sort((a, b) => a.cursor - b.cursor);
  const cursors = JSON.stringify(all.map(({ cursor }) => cursor));
  const badLogs = logs.flatMap((log) => {
    const run_id = log[0]?.run_id ?? "a run";
    const faults = findLogFaults(run_id, log);
    if (log.length !== stored.get(run_id)?.length) faults.push(`${run_id}: ${log.length} events read`);
    if (getStdout(log) !== text) faults.push(`${run_id}: another text than it printed`);
    if (log.at(-1)?.event.type !== "result") faults.push(`${run_id}: no result at its end`);
    return faults.slice(0, 3);
  });
  const badFeeds = feeds.flatMap((feed) =>
    JSON.stringify(feed.map(({ cursor }) => cursor)) === cursors
      ? []
      : [`a feed of all has ${feed.length} events where ${all.length} are stored, or another order`],
  );
  return {
    seen: {
      kills,
      events: all.length,
      readers: logs.length + feeds.length,
      "times cut off": cuts,
      "readers that missed, doubled or misplaced something": badLogs.length + badFeeds.length,
    },
    broken: [
      ...badLogs,
      ...badFeeds,
      ...(stored.size === runs ? [] : [`${stored.size} runs are stored`]),
      ...(cuts > 0 ? [] : ["nobody was cut off"]),
    ],
    late: [],
  };
}
