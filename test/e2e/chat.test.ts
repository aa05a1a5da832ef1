import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { chatHistoryFile, recordDirectory } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { openTerminal, keys, terminalTest, type Terminal } from "./at-terminal.ts";
import { drover } from "./drover.ts";
import { createScriptedProject, createWaitCall } from "./scripted-project.ts";
import { startDrover } from "./start-drover.ts";

const fullAccess = { permissions: { mode: "bypassPermissions" } };

/** Starts a chat and waits for its prompt, because earlier input would be read by the terminal itself. */
async function openChat(project: ReturnType<typeof createScriptedProject>): Promise<Terminal> {
  const chat = openTerminal(["chat", "talker"], project);
  await chat.waitForText("› ");
  return chat;
}

/** Returns the runs of a project, oldest first. */
async function listRuns(project: ReturnType<typeof createScriptedProject>): Promise<Run[]> {
  const { stdout } = await drover(["runs", "list", "--json"], project);
  const rows = stdout.trim().split("\n").filter(Boolean).toReversed();
  // The format in which the command line prints runs.
  return rows.map((line) => JSON.parse(line) as Run);
}

terminalTest("each message is a run of one session, with its tools and its answer", async () => {
  const project = createScriptedProject(
    [
      { text: "I write it.", tools: [{ name: "file.write", input: { path: "a.txt", content: "a" } }] },
      { text: "It is written." },
      { text: "You are welcome." },
    ],
    fullAccess,
  );
  const chat = await openChat(project);
  chat.press("write a file\r");
  await chat.waitForText("I write it.", "✓ file.write a.txt", "It is written.", "tokens in");
  chat.press("thanks\r");
  await chat.waitForText("You are welcome.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  expect(chat.shown()).toContain("Continue: drover chat talker --session");
  const runs = await listRuns(project);
  expect(runs.map(({ mode, trigger_type, status }) => [mode, trigger_type, status])).toEqual([
    ["start", "chat", "completed"],
    ["resume", "chat", "completed"],
  ]);
  expect(new Set(runs.map(({ session_id }) => session_id)).size).toBe(1);
});

terminalTest("Ctrl-C stops the turn, and the conversation continues", async () => {
  const project = createScriptedProject(
    [{ text: "I wait.", tools: createWaitCall("never") }, { text: "Here I am." }],
    fullAccess,
  );
  const chat = await openChat(project);
  chat.press("wait\r");
  await chat.waitForText("I wait.", "command.run while", "Ctrl-C to stop");
  chat.press(keys.ctrlC);
  // The summary of the stopped turn. Otherwise the next look could take it for the summary of the next turn.
  await chat.waitForText("stopped", "tokens in");
  chat.press("hello?\r");
  await chat.waitForText("Here I am.", "tokens in");
  chat.press("/quit\r");
  expect(await chat.exitCode).toBe(0);
  expect((await listRuns(project)).map(({ status }) => status)).toEqual(["cancelled", "completed"]);
});

terminalTest("a second Ctrl-C leaves the chat, also at an empty prompt", async () => {
  const project = createScriptedProject([{ text: "Hello." }], fullAccess);
  const chat = await openChat(project);
  chat.press("hi\r");
  await chat.waitForText("Hello.", "tokens in");
  chat.press("half a message");
  await chat.waitForText("half a message");
  chat.press(keys.ctrlC);
  chat.press(keys.ctrlC);
  await chat.waitForText("Ctrl-C again");
  chat.press(keys.ctrlC);
  expect(await chat.exitCode).toBe(0);
});

terminalTest("a message typed while the agent works reaches the run", async () => {
  const go = join(createScriptedProject([]).cwd, "go");
  const project = createScriptedProject(
    [{ text: "I wait.", tools: createWaitCall(go) }, { text: "Done waiting." }, { text: "And the second." }],
    fullAccess,
  );
  const chat = await openChat(project);
  chat.press("first\r");
  await chat.waitForText("I wait.", "command.run while");
  chat.press("second\r");
  // The message is in the transcript, so the run has received it.
  await chat.waitForText("› second\n");
  writeFileSync(go, "");
  await chat.waitForText("Done waiting.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  const [run] = await listRuns(project);
  const { stdout } = await drover(["runs", "events", run!.run_id, "--json"], project);
  expect(stdout).toContain('"user_input"');
  expect(stdout).toContain('"second"');
});

terminalTest("the arrow keys recall earlier input, even in the next chat", async () => {
  const project = createScriptedProject([{ text: "Yes." }], fullAccess);
  const first = await openChat(project);
  first.press("remember me\r");
  await first.waitForText("Yes.", "tokens in");
  first.press(keys.ctrlD);
  await first.exitCode;
  expect(statSync(chatHistoryFile(recordDirectory(join(project.cwd, "state")))).mode & 0o777).toBe(0o600);
  const second = await openChat(project);
  second.press("/cost\r");
  await second.waitForText("0 tokens in");
  second.press(`${keys.up}${keys.up}`);
  await second.waitForText("› remember me");
  second.press("\r");
  await second.waitForText("Yes.", "tokens in");
  second.press(keys.ctrlD);
  expect(await second.exitCode).toBe(0);
  expect((await listRuns(project)).map(({ mode }) => mode)).toEqual(["start", "start"]);
});

terminalTest("a paste of several lines is one message", async () => {
  const project = createScriptedProject([{ text: "Read." }], fullAccess);
  const chat = await openChat(project);
  chat.press("\u001b[200~one\ntwo\u001b[201~\r");
  await chat.waitForText("Read.", "tokens in");
  chat.press(keys.ctrlD);
  await chat.exitCode;
  const [run] = await listRuns(project);
  const { stdout } = await drover(["runs", "show", run!.run_id, "--json"], project);
  expect(stdout).toContain("one\\ntwo");
});

terminalTest("/resume continues a session, /new starts one, /fork leaves the original unchanged", async () => {
  const project = createScriptedProject([{ text: "One." }, { text: "Two." }, { text: "Three." }], fullAccess);
  const chat = await openChat(project);
  chat.press("a\r");
  await chat.waitForText("One.", "tokens in");
  chat.press("/new\r");
  await chat.waitForText("new session");
  chat.press("b\r");
  await chat.waitForText("One.", "tokens in");
  chat.press("/resume\r");
  await chat.waitForText("(this one)");
  chat.press("/resume 2\r");
  await chat.waitForText("1 turn");
  chat.press("c\r");
  await chat.waitForText("Two.", "tokens in");
  chat.press("/fork last\r");
  await chat.waitForText("The turn must be a number");
  chat.press("/fork 1\r");
  await chat.waitForText("a copy of the first turn");
  chat.press("d\r");
  // The copy has only the first turn, so this is the second.
  await chat.waitForText("Two.", "tokens in");
  chat.press("/files\r");
  await chat.waitForText("response.txt");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  const runs = await listRuns(project);
  expect(runs.map(({ mode }) => mode)).toEqual(["start", "start", "resume", "fork"]);
  expect(runs[2]!.session_id).toBe(runs[0]!.session_id);
  const { stdout } = await drover(["sessions", "show", runs[3]!.session_id!, "--json"], project);
  expect(JSON.parse(stdout)).toMatchObject({ forked_from: runs[0]!.session_id, fork_at_turn: 1 });
});

terminalTest("a chat works the same through a coordinator", async () => {
  const project = createScriptedProject(
    [{ text: "I wait.", tools: createWaitCall("never") }, { text: "Served." }],
    fullAccess,
  );
  await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
  const chat = await openChat(project);
  chat.press("hi\r");
  await chat.waitForText("I wait.", "command.run while");
  chat.press(keys.ctrlC);
  await chat.waitForText("stopped");
  chat.press("again\r");
  await chat.waitForText("Served.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
});

it("without a terminal each line is a turn, and the answers are the output", async () => {
  const project = createScriptedProject(
    [
      { text: "One.", tools: [{ name: "file.write", input: { path: "a", content: "a" } }] },
      { text: "Two." },
      { text: "Three." },
    ],
    fullAccess,
  );
  const { code, stdout, stderr } = await drover(["chat", "talker"], { ...project, input: "first\n\nsecond\n" });
  expect(stdout).toBe("One.\nTwo.\nThree.\n");
  expect(stderr).toContain("✓ file.write a");
  expect(stdout + stderr).not.toContain("\u001b");
  expect(code).toBe(0);
  expect((await listRuns(project)).map(({ mode }) => mode)).toEqual(["start", "resume"]);
});

it("with --json prints every event, and the run at the end of each turn, as one line", async () => {
  const project = createScriptedProject([{ text: "One." }], fullAccess);
  const { stdout } = await drover(["chat", "talker", "--json"], { ...project, input: "first\nsecond\n" });
  // The formats in which the command line prints events and runs.
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event?: { type: string }; run?: Run });
  expect(lines.filter(({ event }) => event?.type === "assistant").length).toBe(2);
  expect(lines.filter(({ run }) => run?.status === "completed").length).toBe(2);
});

it("--session continues a session, and refuses one of another agent", async () => {
  const project = createScriptedProject([{ text: "One." }, { text: "Two." }], fullAccess);
  await drover(["chat", "talker"], { ...project, input: "first\n" });
  const [run] = await listRuns(project);
  const continued = await drover(["chat", "talker", "--session", run!.session_id!], { ...project, input: "second\n" });
  expect(continued.stdout).toBe("Two.\n");
  const ofOtherAgent = await drover(["chat", "echo", "--session", run!.session_id!], { ...project, input: "x\n" });
  expect(ofOtherAgent.code).toBe(2);
});

it("stops at the first turn that does not complete", async () => {
  const project = createScriptedProject([{ tools: [{ name: "file.read", input: { path: "missing" } }] }], {
    ...fullAccess,
    max_turns: 1,
  });
  const { code, stderr } = await drover(["chat", "talker"], { ...project, input: "first\nsecond\n" });
  expect(code).toBe(1);
  expect(stderr).toContain("max_turns");
  expect((await listRuns(project)).length).toBe(1);
});

it("refuses a procedural agent with the command that runs it, and an unknown agent with a suggestion", async () => {
  const project = createScriptedProject([{ text: "One." }]);
  const command = await drover(["chat", "echo"], { ...project, input: "hi\n" });
  expect(command.code).toBe(2);
  expect(command.stderr).toContain("drover run echo --message");
  const unknown = await drover(["chat", "talkr"], { ...project, input: "hi\n" });
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain("Did you mean talker?");
  expect(existsSync(chatHistoryFile(recordDirectory(join(project.cwd, "state"))))).toBe(false);
});

terminalTest("an unknown agent ends the chat and restores the terminal", async () => {
  const project = createScriptedProject([{ text: "One." }]);
  const chat = openTerminal(["chat", "talkr"], project);
  expect(await chat.exitCode).toBe(2);
  expect(chat.shown()).toContain("Did you mean talker?");
  expect(chat.shown().lastIndexOf("\u001b[?2004l")).toBeGreaterThan(chat.shown().lastIndexOf("\u001b[?2004h"));
  expect(readFileSync(join(project.cwd, "scripts/talk.json"), "utf8")).toContain("One.");
});
