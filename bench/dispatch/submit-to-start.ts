import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { median, ms, printTable, ratio, times } from "../rounds.ts";
import type { Bull } from "./bull.ts";
import { type Drover, untilAllEnded } from "./drover.ts";
import { addTo, percentile, type Rounds, spread } from "./figures.ts";
import type { Told } from "./tell.ts";

interface Sides {
  drover: Drover;
  bull: Bull | null;
  told: Told;
}

/** One at a time on an idle system: from before the request until the worker's own code runs. */
export async function submitToStart({ drover, bull, told }: Sides, rounds: number, samples: number): Promise<void> {
  const post = poster(drover);
  let count = 0;
  const ways: { name: string; submit: (id: string) => Promise<void>; over: "started" | "finished" }[] = [
    { name: "drover", submit: (id) => post("noop", id), over: "started" },
    { name: "drover true", submit: (id) => post("true", id), over: "finished" },
  ];
  if (bull) {
    ways.push({ name: "bull", submit: (id) => bull.add("noop", id), over: "started" });
    ways.push({ name: "bull true", submit: (id) => bull.add("true", id), over: "finished" });
  }
  const finished = followResults(drover);
  const once = async ({ name, submit, over }: (typeof ways)[number]): Promise<number> => {
    const id = `${name.replace(" ", "-")}-${count++}`;
    const began = process.hrtime.bigint();
    const answered = submit(id);
    const ended =
      over === "started" ? told.started(id) : name.startsWith("drover") ? finished.next() : told.finished(id);
    const took = Number((await ended) - began) / 1e6;
    await answered;
    // what follows a start is not to be met by the next submit
    await pause(20);
    return took;
  };
  const medians: Rounds = new Map();
  const tails: Rounds = new Map();
  const all = new Map<string, number[]>();
  for (const way of ways) for (let warm = 0; warm < 50; warm++) await once(way);
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < ways.length; at++) {
      const way = ways[(at + round) % ways.length]!;
      const took: number[] = [];
      for (let sample = 0; sample < (way.over === "started" ? samples : samples / 4); sample++)
        took.push(await once(way));
      addTo(medians, way.name, median(took));
      addTo(tails, way.name, percentile(took, 0.99));
      all.set(way.name, [...(all.get(way.name) ?? []), ...took]);
    }
  }
  finished.stop();
  await untilAllEnded(drover);
  const row = (name: string, label: string, peer: string | null, goal: string): string[] => [
    label,
    spread(medians.get(name)!),
    ms(percentile(all.get(name)!, 0.99)),
    peer && bull ? times(ratio(medians, name, peer)) : "",
    peer && bull ? times(ratio(tails, name, peer)) : "",
    goal,
  ];
  printTable(
    "Submit to start, one at a time",
    ["what", "p50 (spread)", "p99", "p50 against BullMQ", "p99 against BullMQ", "goal"],
    [
      row("drover", "POST /runs until the executor runs; no process started", "bull", "p50 <= 0.8x"),
      ...(bull ? [row("bull", "BullMQ add until the processor runs", null, "")] : []),
      row(
        "drover true",
        "POST /runs of /bin/true until its result is streamed back: PID namespace, audited",
        "bull true",
        "",
      ),
      ...(bull ? [row("bull true", "BullMQ add until completed, the processor spawns /bin/true", null, "")] : []),
    ],
  );
}

function poster({ url, token }: Drover): (agent: string, id: string) => Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const target = new URL("/runs", url);
  return (agent_name, id) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ agent_name, parameters: { id, message: "Hello World" } });
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      };
      const sent = request(target, { method: "POST", agent, headers }, (response) => {
        response
          .resume()
          .once("end", () =>
            response.statusCode === 201 ? resolve() : reject(new Error(`POST /runs: ${response.statusCode}`)),
          );
      });
      sent.once("error", reject);
      sent.end(body);
    });
}

/** The moments at which results of runs of /bin/true come in over the stream of all events. */
function followResults({ client }: Drover): { next(): Promise<bigint>; stop(): void } {
  const ending = new AbortController();
  const waiting: ((at: bigint) => void)[] = [];
  let fault: unknown = null;
  void (async () => {
    const { next_cursor } = await client.events({ limit: 1 });
    for await (const { event } of client.follow({ after: Number(next_cursor ?? 0), signal: ending.signal })) {
      if (event.type === "result" && event.exit_code === 0) waiting.shift()?.(process.hrtime.bigint());
    }
  })().catch((error: unknown) => (fault = error));
  return {
    next: () => (fault ? Promise.reject(fault) : new Promise((resolve) => waiting.push(resolve))),
    stop: () => ending.abort(),
  };
}
