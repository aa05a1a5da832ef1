import { createApiClient } from "../src/wire/api-client.ts";
import { createHttpTransport } from "../src/wire/http-transport.ts";
import type { Transport } from "../src/wire/transport.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";

interface Watched {
  cuts: number;
  counted: number;
  wrong: string[];
  status: string | null;
}

/** Many readers follow a run that prints many lines, and each is disconnected now and then. Each gets every line once, in order. */
export async function manyReaders(
  { lines, readers, cutsEach }: { lines: number; readers: number; cutsEach: number },
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, null, async (testbed) => {
    await testbed.startRunner({ name: "printer", slots: 1 });
    await testbed.client.agents.put("count", { type: "procedural", command: `seq 1 ${lines}` });
    const { run_id } = await testbed.client.submit({ agent_name: "count", parameters: {} });
    const watched = await Promise.all(
      Array.from({ length: readers }, () => watch(run_id, createCuttingTransport(testbed, cutsEach, lines))),
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
      broken: [...watched.flatMap(({ wrong }) => wrong), ...unwatched.map((item) => JSON.stringify(item))],
      late: [],
    };
  });
}

/** Follows the run to its end and checks its lines. */
async function watch(run_id: string, cutter: ReturnType<typeof createCuttingTransport>): Promise<Watched> {
  const client = createApiClient(cutter.transport);
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

/** Real connections. The first ones break after a random number of bytes. */
function createCuttingTransport(
  { url, token }: Testbed,
  most: number,
  lines: number,
): { transport: Transport; cuts: number } {
  const real = createHttpTransport({ url, token });
  const cutter = {
    cuts: 0,
    transport: {
      ...real,
      async bytes(...call: Parameters<Transport["bytes"]>) {
        const answer = await real.bytes(...call);
        if (answer === null || cutter.cuts === most) return answer;
        // In total fewer bytes than the run prints, so that every cut happens.
        const room = (Math.random() * 0.6 * (lines * 6)) / most;
        return { ...answer, bytes: cutAfter(answer.bytes, room, () => (cutter.cuts += 1)) };
      },
    },
  };
  return cutter;
}

async function* cutAfter(
  bytes: AsyncIterable<Uint8Array>,
  room: number,
  onCut: () => void,
): AsyncGenerator<Uint8Array> {
  let remaining = room;
  for await (const chunk of bytes) {
    remaining -= chunk.length;
    yield remaining > 0 ? chunk : chunk.subarray(0, Math.max(0, chunk.length + remaining));
    if (remaining > 0) continue;
    onCut();
    throw new TypeError("cut off");
  }
}
