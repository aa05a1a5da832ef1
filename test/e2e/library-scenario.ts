/**
 * A program that uses the whole library, in TypeScript. It is compiled against the packed declarations and run as an ES
 * module and as CommonJS. It prints one line per step.
 */
export function libraryScenario(format: "esm" | "cjs"): string {
  const names = "AgentRunner, connect, DroverError, execute, HostError, RequestError, runAgent, RunnerError, start";
  const types = "Drover, ExecuteResult, Run, RunnerResult, Session, StoredEvent, StoredFile";
  const imports =
    format === "esm"
      ? `import { ${names}, type ${types.replaceAll(", ", ", type ")} } from "drover";`
      : `import drover = require("drover");
const { ${names} } = drover;
${types
  .split(", ")
  .map((name) => `type ${name} = drover.${name};`)
  .join("\n")}`;
  return `${imports}\n${program}`;
}

const program = `
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const state = "state-" + process.argv[2];
const print = (...words: unknown[]): void => console.log(words.join(" "));

async function main(): Promise<void> {
  const result: ExecuteResult = await execute("echo hi", { stateDir: state });
  print("execute", result.stdout.trim(), result.success, typeof result.runId);
  // @ts-expect-error stdout is a string: the declarations were found, and are not any
  const wrong: number = result.stdout;
  print("unrecorded", (await execute("echo hi", { record: false })).runId, typeof wrong);
  const running = start({ executable: "cat" }, { stdin: "pipe" });
  running.stdin!.end("through");
  let streamed = "";
  for await (const chunk of running.stdout!) streamed += String(chunk);
  print("start", streamed, (await running.result).exitCode);

  mkdirSync("profiles", { recursive: true });
  writeFileSync("profiles/model.json", '{ "type": "model" }');
  const turns = [{ tools: [{ name: "file.write", input: { path: "notes.txt", content: "written" } }] }, { text: "Done." }];
  writeFileSync("turns.json", JSON.stringify({ turns }));
  const drover: Drover = await connect({ stateDir: state, profiles: "profiles" });
  print("connect", drover.url, (await drover.runs.list()).items.length);

  await drover.agents.put("greet", { type: "procedural", command: "echo hello" });
  const { run_id } = await drover.submit({ agent_name: "greet" });
  const events: StoredEvent[] = [];
  for await (const stored of drover.runs.follow(run_id)) events.push(stored);
  const later: StoredEvent[] = [];
  for await (const stored of drover.runs.follow(run_id, { after: 1 })) later.push(stored);
  print("follow", events.at(-1)!.event.type, events.length - later.length);
  const run: Run = await drover.runs.wait(run_id);
  print("wait", run.status, run.result_text?.trim());
  // @ts-expect-error the client is typed by the routes
  void ((): unknown => drover.submit({ agent: "greet" }));
  print("retry", (await drover.runs.wait((await drover.runs.retry(run_id)).run_id)).status);

  await drover.agents.put("slow", { type: "procedural", command: "sleep 600" });
  const slow = await drover.submit({ agent_name: "slow" });
  await drover.runs.stop(slow.run_id);
  print("stop", (await drover.runs.wait(slow.run_id)).status);

  const permissions = { mode: "default" as const };
  const writer = { executor: "model", provider: "scripted", script: resolve("turns.json"), permissions };
  await drover.agents.put("writer", { type: "autonomous", ...writer });
  const asking = await drover.submit({ agent_name: "writer", prompt: "Write", attended: true });
  for await (const { event } of drover.runs.follow(asking.run_id))
    if (event.type === "permission_request") {
      const { items } = await drover.questions.list();
      print("question", items.length, event.tool);
      await drover.questions.answer(asking.run_id, event.request_id, { decision: "allow" });
    }
  const files: StoredFile[] = (await drover.runs.files(asking.run_id)).items;
  print("files", files.map(({ path }) => path), (await drover.runs.read(asking.run_id, "notes.txt")).toString());
  const saved = await drover.runs.download(asking.run_id, "notes.txt", "saved-" + process.argv[2]);
  print("download", readFileSync(saved, "utf8"));

  const session_id = (await drover.runs.get(asking.run_id)).session_id!;
  const resumed = await drover.runs.wait((await drover.sessions.resume(session_id, { prompt: "Again" })).run_id);
  const forked = await drover.runs.wait((await drover.sessions.fork(session_id, { prompt: "Other" })).run_id);
  const sessions: Session[] = (await drover.sessions.list()).items;
  print("sessions", resumed.mode, forked.mode, sessions.length, resumed.session_id === session_id);

  const refused: unknown = await drover.submit({ agent_name: "nobody" }).catch((error: unknown) => error);
  if (refused instanceof RequestError) print("refused", refused.code, refused instanceof DroverError, Boolean(refused.next));
  const away: unknown = await connect({ url: "http://127.0.0.1:1" }).catch((error: unknown) => error);
  if (away instanceof HostError) print("away", away.code);
  await drover.close();

  const agent = { name: "helper", executor: "model", provider: "scripted" };
  const ran: RunnerResult = await runAgent({ agent, prompt: "Do it", stateDir: state });
  // @ts-expect-error there is no such mode
  const mistaken: Parameters<typeof runAgent>[0]["agent"] = { name: "a", permissions: { mode: "yolo" } };
  const runner = new AgentRunner(state);
  const second = await runner.resume(ran.sessionId!, agent, "Continue");
  const branch = await runner.fork(ran.sessionId!, agent, "Try it differently");
  print("runAgent", ran.success, second.success, branch.success, branch.sessionId !== ran.sessionId, typeof mistaken);
  const failed = await runAgent({ agent: { name: "bad", command: "exit 3" }, prompt: "", stateDir: state });
  print("failed", failed.success, failed.error instanceof RunnerError);
}
void main();
`;

export const expectedOutput = `execute hi true string
unrecorded  string
start through 0
connect this process 1
follow result 1
wait completed hello
retry completed
stop cancelled
question 1 file.write
files notes.txt written
download written
sessions resume fork 5 true
refused DROVER-SUB-001 true true
away DROVER-API-023
runAgent true true true true object
failed false true
`;
