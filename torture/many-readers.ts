import { createClient } from "../src/wire/client.ts";
import type { Fetch } from "../src/wire/send.ts";
import type { Finding, Tools } from "./finding.ts";
import { inPlace, type Place } from "./place.ts";

interface Watched {
  cuts: number;
  counted: number;
  wrong: string[];
  status: string | null;
}

/** A run that prints many lines has many readers, each of which is cut off now and then: each has every line once, in order. */
export async function manyReaders(
  { lines, readers, cutsEach }: { lines: number; readers: number; cutsEach: number },
  tools: Tools,
): Promise<Finding> {
  return inPlace(tools, null, async (place) => {
    await place.startRunner({ name: "printer", slots: 1 });
    await place.client.agents.put("count", { type: "procedural", command: `seq 1 ${lines}` });
    const { run_id } = await place.client.submit({ agent_name: "count", parameters: {} });
    const watched = await Promise.all(
      Array.from({ length: readers }, () => watch(place, run_id, cuttingFetch(cutsEach, lines))),
    );
    const unwatched = watched.filter(
      ({ counted, cuts, status }) => counted !== lines || cuts !== cutsEach || status !== "completed",
    );
    return {
      seen: {
        lines,
        readers,
        cuts: watched.reduce((sum, { cuts }) => sum + cuts, 0),
        "readers that missed something": unwatched.length,
        "lines out of order or doubled": watched.reduce((sum, { wrong }) => sum + wrong.length, 0),
      },
      broken: [...watched.flatMap(({ wrong }) => wrong), ...unwatched.map((one) => JSON.stringify(one))],
      late: [],
    };
  });
}

/** Follows the run to its end, counting its lines. */
async function watch({ url, token }: Place, run_id: string, cutter: ReturnType<typeof cuttingFetch>): Promise<Watched> {
  const client = createClient({ url, token, fetch: cutter.fetch });
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
function cuttingFetch(most: number, lines: number): { fetch: Fetch; readonly cuts: number } {
  let cuts = 0;
  const cutting: Fetch = async (...request) => {
    const response = await fetch(...request);
    if (cuts === most || response.body === null) return response;
    // together they are fewer bytes than the run prints, so that all of them happen
    let left = (Math.random() * 0.6 * (lines * 6)) / most;
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
