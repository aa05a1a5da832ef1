import { setTimeout as pause } from "node:timers/promises";
import type { NumberedEvent } from "../../src/model/event.ts";
import { createHttpPort } from "../../src/wire/http-port.ts";
import { formatMs, printTable, computeRatio, formatTimes } from "../rounds.ts";
import { type Child, startRole } from "./children.ts";
import { openHttp } from "./connection.ts";
import { startCoordinator } from "./drover.ts";
import { addSample, formatRate, type Rounds, formatSpread } from "./figures.ts";
import type { JobTimes } from "./job-times.ts";

const readers = 500;
/** Callers with 100 readers each, because a coordinator allows one caller at most 500 open requests. */
const callers = 5;
/** The rate of one command's output, which is batched for 50 ms. */
const pacedEventsPerSecond = 20;

interface Side {
  name: string;
  /** Events per round, enough for a few seconds. */
  events: number;
  append(messages: string[]): Promise<void>;
  /** The stream's address and the readers' tokens. */
  stream: { url: string; path: string; tokens: string[] };
  close(): Promise<void>;
}

/** 500 readers of one run in a separate process: first at full speed, then at a rate that both sides sustain. */
export async function measureSse(
  root: string,
  directory: string,
  jobTimes: JobTimes,
  jobTimesPath: string,
  rounds: number,
): Promise<void> {
  const sides = [await droverSide(root, directory), await naiveSide()];
  const watching: Child[] = [];
  for (const { name, stream } of sides)
    watching.push(await startRole("sse-readers", { ...stream, readers, jobTimesPath, name }));
  const speeds: Rounds = new Map();
  const delays: Rounds = new Map();
  for (let round = -1; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const speed = await measureSpeed(side, jobTimes, `full-${side.name}-${round}`);
      const delay = await measureDelay(side, jobTimes, `paced-${side.name}-${round}`);
      if (round < 0) continue;
      addSample(speeds, side.name, speed);
      addSample(delays, side.name, delay);
    }
  }
  for (const child of watching) await child.stop();
  for (const side of sides) await side.close();
  printTable(
    `Server-sent events, ${readers} readers of one run`,
    [
      "what",
      "events per second (spread)",
      "against one write per event",
      "goal",
      `p99 delay at ${pacedEventsPerSecond} events/s (spread)`,
      "goal ",
    ],
    [
      [
        "Drover: every event durable before it is sent",
        formatSpread(speeds.get("drover")!, formatRate),
        formatTimes(computeRatio(speeds, "drover", "naive")),
        ">= 10x",
        formatSpread(delays.get("drover")!),
        "< 50 ms",
      ],
      [
        "one write per event and reader, nothing stored",
        formatSpread(speeds.get("naive")!, formatRate),
        "",
        "",
        formatSpread(delays.get("naive")!, formatMs),
        "",
      ],
    ],
  );
}

/** Returns events per second, until the last reader has the last event. */
async function measureSpeed(side: Side, jobTimes: JobTimes, mark: string): Promise<number> {
  const markReceived = jobTimes.started(mark);
  const startedAt = performance.now();
  for (let sent = 0; sent < side.events; sent += 250) {
    const last = sent + 250 >= side.events;
    await side.append(
      Array.from({ length: 250 }, (_, index) => (last && index === 249 ? `mark ${mark} ` : "some of the log")),
    );
  }
  await markReceived;
  return side.events / ((performance.now() - startedAt) / 1000);
}

/** Returns the p99 delay over events and readers in milliseconds, from just before an event is reported until it arrives. */
async function measureDelay(side: Side, jobTimes: JobTimes, mark: string): Promise<number> {
  const p99 = jobTimes.finished(mark);
  const count = pacedEventsPerSecond * 3;
  const startedAt = performance.now();
  const pendingEvents: Promise<void>[] = [];
  for (let sent = 0; sent < count; sent++) {
    const due = startedAt + (sent * 1000) / pacedEventsPerSecond - performance.now();
    if (due > 0) await pause(due);
    pendingEvents.push(side.append([`at ${process.hrtime.bigint()} `]));
  }
  await Promise.all(pendingEvents);
  await side.append([`mark ${mark} `]);
  return Number(await p99) / 1e6;
}

async function droverSide(root: string, directory: string): Promise<Side> {
  const { url, token, client, stop } = await startCoordinator(root, directory, "sse");
  const port = createHttpPort({ url, token });
  const { runner_id, epoch } = await port.register({
    protocol: 1,
    runner_key: "bench-runner-key-0",
    hostname: "box",
    project_dir: "/",
    executor_profile: "noop",
    executor: { type: "noop", config: {} },
    tags: [],
    require_matching_tags: false,
    agents: [],
    slots: 1,
  });
  const { run_id } = await client.submit({ agent_name: "noop", parameters: { id: "sse" } });
  const { claims } = await port.poll(
    { runner_id, epoch, claim_id: "one", want: 1, ack_order: 0 },
    new AbortController().signal,
  );
  const attempt = claims[0]?.attempt ?? 0;
  const tokens: string[] = [];
  for (let index = 0; index < callers; index++)
    tokens.push((await client.tokens.create({ role: "admin", subject: `reader-${index}` })).token);
  let n = 0;
  let previousSend: Promise<unknown> = Promise.resolve();
  // One report at a time, like a runner.
  const append = async (messages: string[]): Promise<void> => {
    const at = new Date().toISOString();
    const events = messages.map((message): NumberedEvent => ({
      n: ++n,
      at,
      event: { type: "progress", percent: 50, message },
    }));
    const report = {
      runner_id,
      epoch,
      held: [[run_id, attempt]] as [string, number][],
      as_of_claim: "one",
      events: [{ run_id, attempt, events }],
      partials: [],
      finishes: [],
    };
    const sent = previousSend.then(() => port.report(report));
    previousSend = sent;
    if ((await sent).fenced.length > 0) throw new Error("the run was fenced");
  };
  // Renew the lease while the other side is measured.
  const heartbeat = setInterval(() => void append([]), 2000);
  return {
    name: "drover",
    events: 5000,
    append,
    stream: { url, path: `/runs/${run_id}/events`, tokens },
    async close() {
      clearInterval(heartbeat);
      port.close();
      await stop();
    },
  };
}

async function naiveSide(): Promise<Side> {
  const server = await startRole("one-write-per-event", {});
  const http = await openHttp(server.ready, "none");
  let previousSend: Promise<unknown> = Promise.resolve();
  return {
    name: "naive",
    events: 500,
    append(messages) {
      const sent = previousSend.then(() => http.request("POST", "/append", JSON.stringify(messages)));
      previousSend = sent;
      return sent.then(() => undefined);
    },
    stream: { url: server.ready, path: "/events", tokens: ["none"] },
    async close() {
      http.close();
      await server.stop();
    },
  };
}
