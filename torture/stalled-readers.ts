import { connect, type Socket } from "node:net";
import { hasEnded } from "../src/model/states.ts";
import type { Finding, Tools } from "./finding.ts";
import { describeImpact, openBystander } from "./bystander.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { forEachConcurrently, pause, countUpTo, waitFor } from "./wait.ts";

interface Size {
  /** The number of lines in the run's log: 900,000 lines are 5.9 MB. */
  lines: number;
  readers: number;
  /** How long the baseline without load is measured. */
  idleMs?: number;
  /** How long the readers stay connected. */
  stayMs?: number;
}

/** H7: clients request the log of a finished run and never read the response. Nobody else is slowed down. */
export async function stalledReaders(
  { lines, readers, idleMs = 5000, stayMs = 5000 }: Size,
  tools: Tools,
): Promise<Finding> {
  return withTestbed(tools, {}, async (testbed) => {
    await testbed.startRunner({ name: "printer", slots: 1 });
    await testbed.client.agents.put("count", { type: "procedural", command: `seq 1 ${lines}` });
    const { run_id } = await testbed.client.submit({ agent_name: "count", parameters: {} });
    const ended = await waitFor(async () => hasEnded((await testbed.client.runs.get(run_id)).status) || null, 120_000);
    if (ended === null) throw new Error("The run that the readers ask for did not end.");
    const bystander = await openBystander(testbed, tools);
    const idle = await bystander.during(pause(idleMs));
    const { token } = await testbed.client.tokens.create({ role: "admin", subject: "stalled" });
    const sockets: Socket[] = [];
    const underLoad = await bystander.during(
      (async () => {
        await forEachConcurrently(
          countUpTo(readers),
          50,
          async (index) => void sockets.push(await ask(testbed, token, run_id, index)),
        );
        await pause(stayMs);
      })(),
    );
    const counted = await countLines(testbed, run_id);
    const { seen, late, broken } = await describeImpact(testbed, idle, underLoad);
    for (const socket of sockets) socket.destroy();
    if (counted !== lines) broken.push(`one who reads got ${counted} of ${lines} lines`);
    return { seen: { lines, readers, ...seen }, broken, late };
  });
}

/** Requests the log in one of its formats and never reads the response, not even its headers. */
function ask({ coordinators }: Testbed, token: string, run_id: string, index: number): Promise<Socket> {
  const forms = [
    [`/runs/${run_id}/events`, "text/event-stream"],
    [`/runs/${run_id}/events`, "text/event-stream"],
    ["/events", "text/event-stream"],
    [`/runs/${run_id}/events?limit=1000`, "application/json"],
  ] as const;
  const [path, accept] = forms[index % forms.length]!;
  const { hostname, port, host } = new URL(coordinators[0]!.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    // The coordinator may disconnect the reader.
    socket.on("error", () => resolve(socket));
    socket.pause();
    const head = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\naccept: ${accept}\r\n\r\n`;
    socket.once("connect", () => socket.write(head, () => resolve(socket)));
  });
}

async function countLines({ client }: Testbed, run_id: string): Promise<number> {
  let text = "";
  let lines = 0;
  for await (const { event } of client.runs.follow(run_id)) {
    if (event.type !== "output") continue;
    text = (text + (event.text ?? "")).replaceAll(/[^\n]*\n/g, () => ((lines += 1), ""));
  }
  return lines;
}
