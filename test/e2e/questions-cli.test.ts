import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Question } from "../../src/model/question.ts";
import type { Run } from "../../src/model/run.ts";
import { openTerminal, keys, terminalTest, type Terminal } from "./at-terminal.ts";
import { drover } from "./drover.ts";
import { createScriptedProject } from "./scripted-project.ts";
import { startDrover } from "./start-drover.ts";

type Project = ReturnType<typeof createScriptedProject>;

/** An agent that asks before it creates a file in its workspace, and then answers. */
function asking(agent: Record<string, unknown> = {}): Project {
  const tools = [{ name: "command.run", input: { command: "echo made >made.txt; pwd" } }];
  return createScriptedProject([{ text: "May I?", tools }, { text: "Thank you." }], agent);
}

async function runInTerminal(project: Project): Promise<Terminal> {
  const run = openTerminal(["run", "talker", "--prompt", "go"], project);
  await run.waitForText("talker asks to use command.run", "$ echo made >made.txt; pwd", "[y]es", "[s]top");
  return run;
}

async function openQuestions(project: Project): Promise<Question[]> {
  const { stdout } = await drover(["questions", "--json"], project);
  const lines = stdout.trim().split("\n").filter(Boolean);
  // The format in which the command line prints questions.
  return lines.map((line) => JSON.parse(line) as Question);
}

async function log(project: Project): Promise<string> {
  const { stdout } = await drover(["runs", "list", "--json"], project);
  const { run_id } = JSON.parse(stdout.split("\n")[0]!) as { run_id: string };
  return (await drover(["runs", "events", run_id, "--json"], project)).stdout;
}

terminalTest("a run asks in its terminal, and y allows the call", async () => {
  const project = asking();
  const run = await runInTerminal(project);
  run.press("y");
  await run.waitForText("allowed", "Thank you.");
  expect(await run.exitCode).toBe(0);
  expect(await log(project)).toContain('"decision":"allow"');
});

terminalTest("n denies with a reason that the model reads", async () => {
  const project = asking();
  const run = await runInTerminal(project);
  run.press("n");
  await run.waitForText("Why not?");
  run.press("use mkdir\r");
  await run.waitForText("denied: use mkdir", "Thank you.");
  expect(await run.exitCode).toBe(0);
  expect(await log(project)).toMatch(/"tool_result".*use mkdir/);
});

terminalTest("e edits the input of the call", async () => {
  const project = asking();
  const run = await runInTerminal(project);
  run.press("e");
  await run.waitForText("Edit the input");
  // Ctrl-U clears the line
  run.press('\u0015{"command": "echo edited"}\r');
  await run.waitForText("allowed", "Thank you.");
  expect(await run.exitCode).toBe(0);
  expect(await log(project)).toContain("edited\\n");
});

terminalTest("s stops the run, and so does Ctrl-C", async () => {
  const project = asking();
  const stopped = await runInTerminal(project);
  stopped.press("s");
  await stopped.waitForText("stopped");
  expect(await stopped.exitCode).not.toBe(0);
  const cancelled = await runInTerminal(project);
  cancelled.press("e");
  await cancelled.waitForText("Edit the input");
  cancelled.press(keys.ctrlC);
  await cancelled.waitForText("not answered: the run was stopped");
  expect(await cancelled.exitCode).toBe(130);
});

terminalTest("names who answered first, in the terminal and to a second answer", async () => {
  const project = asking();
  const run = await runInTerminal(project);
  const [question] = await openQuestions(project);
  expect(question).toMatchObject({ agent_name: "talker", tool: "command.run", decision: null });
  const approved = await drover(["runs", "approve", question!.run_id.slice(0, 30)], project);
  expect(approved).toMatchObject({ code: 0, stdout: `${question!.run_id}\t${question!.request_id}\tallow\n` });
  await run.waitForText("allowed by admin, elsewhere", "Thank you.");
  expect(await run.exitCode).toBe(0);
  const secondAnswer = await drover(["runs", "deny", question!.run_id, question!.request_id], project);
  expect(secondAnswer.code).toBe(1);
  expect(secondAnswer.stderr).toContain("admin already answered with allow");
  const none = await drover(["runs", "deny", question!.run_id], project);
  expect(none.code).toBe(2);
  expect(none.stderr).toContain("has no open question");
  expect((await drover(["questions"], project)).stderr).toContain("No open questions.");
});

terminalTest("a chat asks inline, and `always` lasts for the session", async () => {
  const call = { name: "command.run", input: { command: "echo hi" } };
  const project = createScriptedProject([
    { text: "One.", tools: [call] },
    { text: "Two." },
    { text: "Three.", tools: [call] },
    { text: "Four." },
  ]);
  const chat = openTerminal(["chat", "talker"], project);
  await chat.waitForText("› ");
  chat.press("go\r");
  await chat.waitForText("asks to use command.run", "$ echo hi", "[a]lways");
  chat.press("a");
  await chat.waitForText("allowed", "✓ command.run echo hi", "Two.", "tokens in");
  chat.press("again\r");
  const shown = await chat.waitForText("✓ command.run echo hi", "Four.", "tokens in");
  expect(shown).not.toContain("asks to use");
  chat.press(keys.ctrlD);
  expect(await chat.exitCode).toBe(0);
});

it("without a terminal, asks nothing and denies immediately", async () => {
  const project = asking();
  const { code, stdout } = await drover(["run", "talker", "--prompt", "go"], project);
  expect(code).toBe(0);
  expect(stdout).toContain("Thank you.");
  expect(await log(project)).toContain('"by":"unattended"');
});

it("exits with 75 when a run is parked, and the command that answers continues it", async () => {
  const project = asking({ park_after_seconds: 0.2 });
  const parked = await drover(["run", "talker", "--prompt", "go", "--attended"], project);
  expect(parked.code).toBe(75);
  expect(parked.stderr).toMatch(
    /^drover: Waiting for an answer: talker asks to use command.run.\n  Answer: drover runs approve (\S+) \(or drover runs deny \1\).$/m,
  );
  expect(parked.stderr).toContain("parked: the run waits for an answer");
  expect((await drover(["runs", "why", "last"], project)).stdout).toMatch(
    /^The run is parked. It waits for an answer about command.run: drover runs approve (\S+) \(or drover runs deny \1\)\n$/,
  );
  expect(parked.stderr).toContain("echo made >made.txt; pwd");
  const command = /drover (runs approve \S+)/.exec(parked.stderr)![1]!;
  const resumed = await drover(["runs", "resume", command.split(" ").at(-1)!], project);
  expect(resumed.code).toBe(1);
  expect(resumed.stderr).toContain("is waiting for an answer");
  const approved = await drover(command.split(" "), project);
  expect(approved.stderr).not.toContain("drover up");
  expect(approved.code).toBe(0);
  expect(approved.stdout).toContain("Thank you.");
  expect((await drover(["runs", "why", "last"], project)).stdout).toMatch(
    /^The run completed. For details: drover runs show \S+\n$/,
  );
});

it("a run parked without a coordinator can be answered and continues under a later `drover up`", async () => {
  const project = asking({ park_after_seconds: 0.2 });
  const parked = await drover(["run", "talker", "--prompt", "go", "--attended"], project);
  expect(parked.code, parked.stderr).toBe(75);
  await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
  const [question, ...others] = await openQuestions(project);
  expect([question?.tool, others]).toEqual(["command.run", []]);
  const { run_id, request_id } = question!;
  const shown = async () => JSON.parse((await drover(["runs", "show", run_id, "--json"], project)).stdout) as Run;
  expect(await shown()).toMatchObject({ status: "parked", parked_why: "approval" });
  const approved = await drover(["runs", "approve", run_id], project);
  expect(approved).toMatchObject({ code: 0, stdout: `${run_id}\t${request_id}\tallow\n` });
  await expect.poll(async () => (await shown()).status).toBe("completed");
  expect(await shown()).toMatchObject({ attempt: 2, failures: 0, result_text: "Thank you." });
  const events = await log(project);
  expect(events.split('"type":"permission_request"')).toHaveLength(2);
  expect(events.split('"type":"tool_result"')).toHaveLength(2);
  expect(events).toContain('"decision":"allow"');
});

it("answers questions through the coordinator, and validates edited input", async () => {
  const project = asking();
  await startDrover(["up", "--port", "0"], { ...project, ready: /Drover is up at/ });
  const { stdout } = await drover(["run", "talker", "--prompt", "go", "--attended", "--detach"], project);
  const run_id = stdout.trim();
  const following = drover(["runs", "events", run_id, "--json"], project);
  let questions: Question[] = [];
  while (questions.length === 0) questions = await openQuestions(project);
  const shown = await drover(["questions", "show", run_id], project);
  expect(shown.stdout).toContain("$ echo made >made.txt; pwd");
  const withInvalidJson = await drover(["runs", "approve", run_id, "--input", "{"], project);
  expect(withInvalidJson).toMatchObject({ code: 2 });
  expect(withInvalidJson.stderr).toContain("--input is not valid JSON");
  const withInvalidInput = await drover(["runs", "approve", run_id, "--input", '{"command": 7}'], project);
  expect(withInvalidInput.code).toBe(2);
  expect(withInvalidInput.stderr).toContain("The edited input does not match the schema of the tool command.run");
  const edited = await drover(
    ["runs", "approve", run_id, "--input", '{"command": "echo changed"}', "--remember"],
    project,
  );
  expect(edited.code).toBe(0);
  const events = (await following).stdout;
  expect(events).toContain("changed\\n");
  expect(events).not.toContain("made\\n");
  const { stdout: usage } = await drover(["usage", "--by", "agent", "--json"], project);
  expect(JSON.parse(usage)).toMatchObject({ agent_name: "talker", runs: 1, turns: 2 });
  expect(existsSync(join(project.cwd, "made.txt"))).toBe(false);
});
