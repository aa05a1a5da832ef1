import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { chatHistoryFile, recordDirectory } from "../../src/model/state-layout.ts";
import type { Run } from "../../src/model/run.ts";
import { atTerminal, keys, onTerminal, type Terminal } from "./at-terminal.ts";
import { drover } from "./drover.ts";
import { scriptedProject, waitFor } from "./scripted-project.ts";
import { startDrover } from "./start-drover.ts";

const all = { permissions: { mode: "bypassPermissions" } };

/** A chat that has its prompt: what is typed before that, the terminal itself reads. */
async function openChat(project: ReturnType<typeof scriptedProject>): Promise<Terminal> {
  const chat = atTerminal(["chat", "talker"], project);
  await chat.see("› ");
  return chat;
}

/** The runs of a project, oldest first. */
async function runsOf(project: ReturnType<typeof scriptedProject>): Promise<Run[]> {
  const { stdout } = await drover(["runs", "list", "--json"], project);
  const rows = stdout.trim().split("\n").filter(Boolean).toReversed();
  // runs as the command line prints them
  return rows.map((line) => JSON.parse(line) as Run);
}

onTerminal("each message is a run of one session, with its tools and its answer", async () => {
  const project = scriptedProject(
    [
      { text: "I write it.", tools: [{ name: "file.write", input: { path: "a.txt", content: "a" } }] },
      { text: "It is written." },
      { text: "You are welcome." },
    ],
    all,
  );
  const chat = await openChat(project);
  chat.press("write a file\r");
  await chat.see("I write it.", "✓ file.write a.txt", "It is written.", "tokens in");
  chat.press("thanks\r");
  await chat.see("You are welcome.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  expect(chat.shown()).toContain("Continue: drover chat talker --session");
  const runs = await runsOf(project);
  expect(runs.map(({ mode, trigger_type, status }) => [mode, trigger_type, status])).toEqual([
    ["start", "chat", "completed"],
    ["resume", "chat", "completed"],
  ]);
  expect(new Set(runs.map(({ session_id }) => session_id)).size).toBe(1);
});

onTerminal("Ctrl-C stops the turn, and the conversation continues", async () => {
  const project = scriptedProject([{ text: "I wait.", tools: waitFor("never") }, { text: "Here I am." }], all);
  const chat = await openChat(project);
  chat.press("wait\r");
  await chat.see("I wait.", "command.run while", "Ctrl-C to stop");
  chat.press(keys.ctrlC);
  // The summary of the stopped turn. Otherwise the next look could take it for the summary of the next turn.
  await chat.see("stopped", "tokens in");
  chat.press("hello?\r");
  await chat.see("Here I am.", "tokens in");
  chat.press("/quit\r");
  expect(await chat.exitCode).toBe(0);
  expect((await runsOf(project)).map(({ status }) => status)).toEqual(["cancelled", "completed"]);
});

onTerminal("a second Ctrl-C leaves the chat, also at an empty prompt", async () => {
  const project = scriptedProject([{ text: "Hello." }], all);
  const chat = await openChat(project);
  chat.press("hi\r");
  await chat.see("Hello.", "tokens in");
  chat.press("half a message");
  await chat.see("half a message");
  chat.press(keys.ctrlC);
  chat.press(keys.ctrlC);
  await chat.see("Ctrl-C again");
  chat.press(keys.ctrlC);
  expect(await chat.exitCode).toBe(0);
});

onTerminal("a message typed while the agent works reaches the run", async () => {
  const go = join(scriptedProject([]).cwd, "go");
  const project = scriptedProject(
    [{ text: "I wait.", tools: waitFor(go) }, { text: "Done waiting." }, { text: "And the second." }],
    all,
  );
  const chat = await openChat(project);
  chat.press("first\r");
  await chat.see("I wait.", "command.run while");
  chat.press("second\r");
  // in the transcript: the run has got it
  await chat.see("› second\n");
  writeFileSync(go, "");
  await chat.see("Done waiting.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  const [run] = await runsOf(project);
  const { stdout } = await drover(["runs", "events", run!.run_id, "--json"], project);
  expect(stdout).toContain('"user_input"');
  expect(stdout).toContain('"second"');
});

onTerminal("the arrow keys recall earlier input, even in the next chat", async () => {
  const project = scriptedProject([{ text: "Yes." }], all);
  const first = await openChat(project);
  first.press("remember me\r");
  await first.see("Yes.", "tokens in");
  first.press(keys.ctrlD);
  await first.exitCode;
  expect(statSync(chatHistoryFile(recordDirectory(join(project.cwd, "state")))).mode & 0o777).toBe(0o600);
  const second = await openChat(project);
  second.press("/cost\r");
  await second.see("0 tokens in");
  second.press(`${keys.up}${keys.up}`);
  await second.see("› remember me");
  second.press("\r");
  await second.see("Yes.", "tokens in");
  second.press(keys.ctrlD);
  expect(await second.exitCode).toBe(0);
  expect((await runsOf(project)).map(({ mode }) => mode)).toEqual(["start", "start"]);
});

onTerminal("a paste of several lines is one message", async () => {
  const project = scriptedProject([{ text: "Read." }], all);
  const chat = await openChat(project);
  chat.press("\u001b[200~one\ntwo\u001b[201~\r");
  await chat.see("Read.", "tokens in");
  chat.press(keys.ctrlD);
  await chat.exitCode;
  const [run] = await runsOf(project);
  const { stdout } = await drover(["runs", "show", run!.run_id, "--json"], project);
  expect(stdout).toContain("one\\ntwo");
});

onTerminal("/resume continues a session, /new starts one, /fork leaves the original unchanged", async () => {
  const project = scriptedProject([{ text: "One." }, { text: "Two." }, { text: "Three." }], all);
  const chat = await openChat(project);
  chat.press("a\r");
  await chat.see("One.", "tokens in");
  chat.press("/new\r");
  await chat.see("new session");
  chat.press("b\r");
  await chat.see("One.", "tokens in");
  chat.press("/resume\r");
  await chat.see("(this one)");
  chat.press("/resume 2\r");
  await chat.see("1 turn");
  chat.press("c\r");
  await chat.see("Two.", "tokens in");
  chat.press("/fork last\r");
  await chat.see("The turn must be a number");
  chat.press("/fork 1\r");
  await chat.see("a copy of the first turn");
  chat.press("d\r");
  // the model answers as after one turn
  await chat.see("Two.", "tokens in");
  chat.press("/files\r");
  await chat.see("response.txt");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
  const runs = await runsOf(project);
  expect(runs.map(({ mode }) => mode)).toEqual(["start", "start", "resume", "fork"]);
  expect(runs[2]!.session_id).toBe(runs[0]!.session_id);
  const { stdout } = await drover(["sessions", "show", runs[3]!.session_id!, "--json"], project);
  expect(JSON.parse(stdout)).toMatchObject({ forked_from: runs[0]!.session_id, fork_at_turn: 1 });
});

onTerminal("a chat works the same through a coordinator", async () => {
  const project = scriptedProject([{ text: "I wait.", tools: waitFor("never") }, { text: "Served." }], all);
  await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
  const chat = await openChat(project);
  chat.press("hi\r");
  await chat.see("I wait.", "command.run while");
  chat.press(keys.ctrlC);
  await chat.see("stopped");
  chat.press("again\r");
  await chat.see("Served.", "tokens in");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
});

it("without a terminal each line is a turn, and the answers are the output", async () => {
  const project = scriptedProject(
    [
      { text: "One.", tools: [{ name: "file.write", input: { path: "a", content: "a" } }] },
      { text: "Two." },
      { text: "Three." },
    ],
    all,
  );
  const { code, stdout, stderr } = await drover(["chat", "talker"], { ...project, input: "first\n\nsecond\n" });
  expect(stdout).toBe("One.\nTwo.\nThree.\n");
  expect(stderr).toContain("✓ file.write a");
  expect(stdout + stderr).not.toContain("\u001b");
  expect(code).toBe(0);
  expect((await runsOf(project)).map(({ mode }) => mode)).toEqual(["start", "resume"]);
});

it("with --json prints every event, and the run at the end of each turn, as one line", async () => {
  const project = scriptedProject([{ text: "One." }], all);
  const { stdout } = await drover(["chat", "talker", "--json"], { ...project, input: "first\nsecond\n" });
  // events and runs as the command line prints them
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event?: { type: string }; run?: Run });
  expect(lines.filter(({ event }) => event?.type === "assistant").length).toBe(2);
  expect(lines.filter(({ run }) => run?.status === "completed").length).toBe(2);
});

it("--session continues a session, and refuses one of another agent", async () => {
  const project = scriptedProject([{ text: "One." }, { text: "Two." }], all);
  await drover(["chat", "talker"], { ...project, input: "first\n" });
  const [run] = await runsOf(project);
  const again = await drover(["chat", "talker", "--session", run!.session_id!], { ...project, input: "second\n" });
  expect(again.stdout).toBe("Two.\n");
  const other = await drover(["chat", "echo", "--session", run!.session_id!], { ...project, input: "x\n" });
  expect(other.code).toBe(2);
});

it("stops at the first turn that does not complete", async () => {
  const project = scriptedProject([{ tools: [{ name: "file.read", input: { path: "missing" } }] }], {
    ...all,
    max_turns: 1,
  });
  const { code, stderr } = await drover(["chat", "talker"], { ...project, input: "first\nsecond\n" });
  expect(code).toBe(1);
  expect(stderr).toContain("max_turns");
  expect((await runsOf(project)).length).toBe(1);
});

it("refuses a procedural agent with the command that runs it, and an unknown agent with a suggestion", async () => {
  const project = scriptedProject([{ text: "One." }]);
  const command = await drover(["chat", "echo"], { ...project, input: "hi\n" });
  expect(command.code).toBe(2);
  expect(command.stderr).toContain("drover run echo --message");
  const unknown = await drover(["chat", "talkr"], { ...project, input: "hi\n" });
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain("Did you mean talker?");
  expect(existsSync(chatHistoryFile(recordDirectory(join(project.cwd, "state"))))).toBe(false);
});

onTerminal("an unknown agent ends the chat and restores the terminal", async () => {
  const project = scriptedProject([{ text: "One." }]);
  const chat = atTerminal(["chat", "talkr"], project);
  expect(await chat.exitCode).toBe(2);
  expect(chat.shown()).toContain("Did you mean talker?");
  expect(chat.shown().lastIndexOf("\u001b[?2004l")).toBeGreaterThan(chat.shown().lastIndexOf("\u001b[?2004h"));
  expect(readFileSync(join(project.cwd, "scripts/talk.json"), "utf8")).toContain("One.");
});
