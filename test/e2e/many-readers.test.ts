import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Run } from "../../src/model/run.ts";
import { createClient } from "../../src/wire/client.ts";
import type { Fetch } from "../../src/wire/send.ts";
import { folder } from "./drover.ts";
import { offer, serve, type Serving } from "./serving.ts";

const lines = 1_000_000;
const readers = 20;
const cutsEach = 10;

test(
  "a run that prints a million lines is watched by 20 readers, each cut off ten times: each has every line once, in order",
  { timeout: 240_000 },
  async () => {
    const place = folder();
    mkdirSync(join(place, "profiles"));
    writeFileSync(join(place, "profiles", "plain.json"), JSON.stringify({ type: "procedural", config: {} }));
    const serving = await serve(place);
    await offer(serving, place, "one", ["-x", join(place, "profiles", "plain.json")]);
    await serving.call("PUT", "/agents/count", { type: "procedural", command: `seq 1 ${lines}` });
    const { json: run } = await serving.call<Run>("POST", "/runs", { agent_name: "count" });

    const seen = await Promise.all(Array.from({ length: readers }, () => watch(serving, run.run_id)));
    expect(seen).toEqual(seen.map(() => ({ cuts: cutsEach, counted: lines, wrong: [], status: "completed" })));
  },
);

/** Follows the run to its end, counting its lines. */
async function watch(
  serving: Serving,
  run_id: string,
): Promise<{ cuts: number; counted: number; wrong: string[]; status: string | null }> {
  const cutter = cuttingFetch(cutsEach);
  const client = createClient({ url: serving.url, token: serving.token, fetch: cutter.fetch });
  const wrong: string[] = [];
  let counted = 0;
  let seq = 0;
  let rest = "";
  let status: string | null = null;
  for await (const { event, ...of } of client.runs.follow(run_id)) {
    if (of.seq !== ++seq) wrong.push(`seq ${of.seq} where ${seq} was due`);
    if (event.type === "result") status = event.status;
    if (event.type !== "output") continue;
    const whole = (rest + (event.text ?? "")).split("\n");
    rest = whole.pop() ?? "";
    for (const line of whole)
      if (line !== String(++counted) && wrong.length < 5) wrong.push(`${line} where ${counted} was due`);
  }
  return { cuts: cutter.cuts, counted, wrong, status };
}

/** Real connections, the first of which are broken somewhere on the way. */
function cuttingFetch(most: number): { fetch: Fetch; readonly cuts: number } {
  let cuts = 0;
  const cutting: Fetch = async (...request) => {
    const response = await fetch(...request);
    if (cuts === most || response.body === null) return response;
    // together they are fewer bytes than the run prints, so that all of them happen
    let left = (Math.random() * 0.6 * (lines * 7)) / most;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.length;
        if (left > 0) return controller.enqueue(chunk);
        cuts += 1;
        controller.enqueue(chunk.subarray(0, Math.max(0, chunk.length + left)));
        controller.error(new TypeError("cut off"));
      },
    });
    return new Response(response.body.pipeThrough(cut), { status: response.status, headers: response.headers });
  };
  return {
    fetch: cutting,
    get cuts() {
      return cuts;
    },
  };
}
