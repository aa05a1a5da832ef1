import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startTestCoordinator } from "../../test/coordinator.ts";
import { connect, type Drover, DroverError, HostError, RequestError, type StoredEvent } from "../index.ts";
import { openProfiles } from "../compose/open-profiles.ts";
import { startRunner } from "../runner.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

function createProject() {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-connect-")));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const profiles = join(directory, "profiles");
  mkdirSync(profiles);
  writeFileSync(join(profiles, "model.json"), JSON.stringify({ type: "model", env_from: [] }));
  writeFileSync(join(profiles, "procedural.json"), JSON.stringify({ type: "procedural" }));
  const env = { PATH: process.env["PATH"], HOME: directory };
  return { directory, profiles, env, stateDir: join(directory, "state") };
}

/** Opens the state directory in this process. */
async function openLocally(): Promise<{ drover: Drover; directory: string }> {
  const { directory, profiles, env, stateDir } = createProject();
  const drover = await connect({ stateDir, profiles, cwd: directory, env });
  cleanups.push(drover.close);
  return { drover, directory };
}

/** Starts a coordinator with a runner and connects over HTTP. */
async function openRemotely(): Promise<{ drover: Drover; directory: string }> {
  const { directory, profiles, env } = createProject();
  const coordinator = await startTestCoordinator();
  cleanups.push(coordinator.dispose);
  const names = ["model", "procedural"];
  const opened = await openProfiles({ names, directories: [profiles], env, onNotice: expect.fail });
  cleanups.push(opened.stop);
  const runner = await startRunner({
    port: coordinator.port,
    profiles: opened.profiles,
    stateDirectory: join(directory, "runner"),
    projectDir: directory,
    env,
    maxOutputKb: 1024,
    onNotice: () => undefined,
  });
  cleanups.push(runner.stop);
  const drover = await connect({ url: coordinator.url, token: coordinator.adminToken });
  cleanups.push(drover.close);
  return { drover, directory };
}

/** Stores an agent of the executor `model` that takes these scripted turns. */
async function putScripted(drover: Drover, directory: string, name: string, turns: readonly unknown[]): Promise<void> {
  const script = join(directory, `${name}.json`);
  writeFileSync(script, JSON.stringify({ turns }));
  const permissions = { mode: "default" as const };
  await drover.agents.put(name, { type: "autonomous", executor: "model", provider: "scripted", script, permissions });
}

const write = (path: string, content: string) => ({ tools: [{ name: "file.write", input: { path, content } }] });

describe.each([
  ["in this process", openLocally],
  ["over HTTP", openRemotely],
])("a connection %s", (_, open) => {
  it("submits a run, follows its events from any position, waits for it, and retries it", async () => {
    const { drover } = await open();
    await drover.agents.put("greet", { type: "procedural", command: "echo hello" });
    expect((await drover.agents.list()).items.map(({ name }) => name)).toContain("greet");
    const { run_id } = await drover.submit({ agent_name: "greet" });
    const events: StoredEvent[] = [];
    for await (const stored of drover.runs.follow(run_id)) events.push(stored);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
    expect(events.at(-1)!.event).toMatchObject({ type: "result", status: "completed" });
    const laterEvents: StoredEvent[] = [];
    for await (const stored of drover.runs.follow(run_id, { after: 2 })) laterEvents.push(stored);
    expect(laterEvents).toEqual(events.slice(2));
    expect(await drover.runs.wait(run_id)).toMatchObject({ status: "completed", result_text: "hello\n" });
    const { run_id: retriedId } = await drover.runs.retry(run_id);
    expect(await drover.runs.wait(retriedId)).toMatchObject({ status: "completed", retry_of: run_id });
  });

  it("answers a question, then reads and saves the file that the run wrote", async () => {
    const { drover, directory } = await open();
    await putScripted(drover, directory, "writer", [write("notes.txt", "written\n"), { text: "It is written." }]);
    const { run_id } = await drover.submit({ agent_name: "writer", prompt: "Write it", attended: true });
    for await (const { event } of drover.runs.follow(run_id))
      if (event.type === "permission_request")
        await drover.questions.answer(run_id, event.request_id, { decision: "allow" });
    expect(await drover.runs.wait(run_id)).toMatchObject({ status: "completed", result_text: "It is written." });
    expect((await drover.runs.files(run_id)).items).toMatchObject([{ path: "notes.txt", size: 8 }]);
    expect((await drover.runs.read(run_id, "notes.txt")).toString()).toBe("written\n");
    const savedPath = await drover.runs.download(run_id, "notes.txt", `${directory}/`);
    expect(savedPath).toBe(join(directory, "notes.txt"));
    expect(readFileSync(savedPath, "utf8")).toBe("written\n");
    await expect(drover.runs.read(run_id, "other.txt")).rejects.toBeInstanceOf(RequestError);
  });

  it("resumes a session, and forks it at a turn", async () => {
    const { drover, directory } = await open();
    await putScripted(drover, directory, "talker", [{ text: "One." }, { text: "Two." }, { text: "Three." }]);
    const first = await drover.runs.wait((await drover.submit({ agent_name: "talker", prompt: "Start" })).run_id);
    const session_id = first.session_id!;
    const resumed = await drover.sessions.resume(session_id, { prompt: "Continue" });
    expect(await drover.runs.wait(resumed.run_id)).toMatchObject({ status: "completed", mode: "resume", session_id });
    const forked = await drover.sessions.fork(session_id, { prompt: "Another way", fork_at_turn: 1 });
    expect(await drover.runs.wait(forked.run_id)).toMatchObject({ status: "completed", mode: "fork" });
    expect(forked.session_id).not.toBe(session_id);
    expect((await drover.sessions.list()).items).toHaveLength(2);
    await expect(drover.sessions.resume("unknown", { prompt: "x" })).rejects.toBeInstanceOf(RequestError);
  });

  it("stops following and waiting when a signal is aborted, without stopping the run", async () => {
    const { drover, directory } = await open();
    const startedFile = join(directory, "started");
    await drover.agents.put("slow", { type: "procedural", command: `sh -c 'touch ${startedFile}; sleep 600'` });
    const { run_id } = await drover.submit({ agent_name: "slow" });
    await expect.poll(() => existsSync(startedFile)).toBe(true);
    const controller = new AbortController();
    const waiting = drover.runs.wait(run_id, { signal: controller.signal });
    const types: string[] = [];
    for await (const { event } of drover.runs.follow(run_id, { signal: controller.signal })) {
      types.push(event.type);
      if (event.type === "execution_started") controller.abort(new Error("enough"));
    }
    expect(types).not.toContain("result");
    await expect(waiting).rejects.toThrow("enough");
    expect(await drover.runs.get(run_id)).toMatchObject({ status: "running" });
    await drover.runs.stop(run_id);
    expect(await drover.runs.wait(run_id)).toMatchObject({ status: "cancelled" });
  });

  it("rejects with a RequestError that has a code and a next step", async () => {
    const { drover } = await open();
    const error: unknown = await drover.submit({ agent_name: "nobody" }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toBeInstanceOf(DroverError);
    expect(error).not.toBeInstanceOf(HostError);
    expect(error).toMatchObject({ code: "DROVER-SUB-001", field: "body.agent_name", next: expect.any(String) });
  });
});

describe("connect", () => {
  it("stops the runs of this process when it is closed, and records that they were cancelled", async () => {
    const { directory, profiles, env, stateDir } = createProject();
    const startedFile = join(directory, "started");
    const drover = await connect({ stateDir, profiles, cwd: directory, env });
    await drover.agents.put("slow", { type: "procedural", command: `sh -c 'touch ${startedFile}; sleep 600'` });
    const { run_id } = await drover.submit({ agent_name: "slow" });
    await expect.poll(() => existsSync(startedFile)).toBe(true);
    await drover.close();
    await drover.close();
    await using reopened = await connect({ stateDir, cwd: directory, env });
    expect(await reopened.runs.get(run_id)).toMatchObject({ status: "cancelled" });
  });

  it("finds agents in a directory that the caller names", async () => {
    const { directory, env, stateDir } = createProject();
    mkdirSync(join(directory, "own"));
    writeFileSync(join(directory, "own", "hi.yaml"), "name: hi\ncommand: echo hi\n");
    await using drover = await connect({ stateDir, agents: "own", cwd: directory, env });
    const { run_id } = await drover.submit({ agent_name: "hi" });
    expect(await drover.runs.wait(run_id)).toMatchObject({ status: "completed", result_text: "hi\n" });
  });

  it("uses DROVER_API_URL unless a state directory is named", async () => {
    const coordinator = await startTestCoordinator();
    cleanups.push(coordinator.dispose);
    const { directory, env, stateDir } = createProject();
    const remote = { ...env, DROVER_API_URL: coordinator.url, DROVER_API_KEY: coordinator.adminToken };
    expect((await connect({ env: remote, cwd: directory })).url).toBe(coordinator.url);
    await using local = await connect({ env: remote, cwd: directory, stateDir });
    expect(local.url).toBe("this process");
  });

  it("rejects if no coordinator responds, or if the coordinator refuses the token", async () => {
    const coordinator = await startTestCoordinator();
    cleanups.push(coordinator.dispose);
    await expect(connect({ url: "http://127.0.0.1:1" })).rejects.toMatchObject({
      name: "HostError",
      code: "DROVER-API-023",
      next: expect.any(String),
    });
    await expect(connect({ url: coordinator.url, token: "drv_wrong" })).rejects.toBeInstanceOf(DroverError);
    await expect(connect({ url: "http://drover.example", token: "drv_x" })).rejects.toMatchObject({
      code: "DROVER-API-035",
    });
  });

  it.each([
    ["options", null],
    ["url", { url: "" }],
    ["stateDir", { url: "http://127.0.0.1:1", stateDir: "state" }],
    ["stateDir", { stateDir: 7 }],
    ["agents", { agents: "" }],
  ])("rejects an invalid %s with an example call", async (field, options) => {
    // A caller in plain JavaScript can do this.
    await expect(connect(options as Parameters<typeof connect>[0])).rejects.toMatchObject({
      code: "DROVER-USE-001",
      field,
      next: expect.stringContaining("connect("),
    });
  });

  it("rejects a missing directory of profiles with a message that names the option of connect()", async () => {
    const { directory, env, stateDir } = createProject();
    await expect(connect({ stateDir, profiles: "missing", cwd: directory, env })).rejects.toMatchObject({
      code: "DROVER-USE-001",
      field: "profiles",
      message: `The directory passed to connect() as \`profiles\` does not exist: ${join(directory, "missing")}`,
    });
  });
});
