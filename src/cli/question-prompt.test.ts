import { describe, expect, it } from "vitest";
import { RequestError } from "../model/errors.ts";
import type { Decision } from "../model/executor.ts";
import { createQuestionPrompt } from "./question-prompt.ts";
import type { Key, KeyName } from "./terminal/keys.ts";
import { createStyle } from "./terminal/style.ts";

const question = {
  run_id: "r",
  request_id: "q1",
  tool: "command.run",
  input: { command: "rm -rf build" },
  effect: "execute",
} as const;

async function open(answer: (decision: Decision) => Promise<unknown> = async () => null) {
  const printedLines: string[] = [];
  const sentDecisions: Decision[] = [];
  const questionPrompt = createQuestionPrompt({
    agent: "writer",
    answer: (_, decision) => {
      sentDecisions.push(decision);
      return answer(decision);
    },
    print: (line) => printedLines.push(line),
    onChange: () => undefined,
    style: createStyle(false),
    idleMs: 0,
  });
  questionPrompt.ask(question);
  await waitForChoices();
  return {
    questionPrompt,
    printedLines,
    sentDecisions,
    press,
    type: (text: string) => press({ name: "text", text }),
    waitForChoices,
  };

  function press(key: KeyName | Key): void {
    questionPrompt.handle(typeof key === "string" ? { name: key } : key);
  }
  /** Waits until the choices are shown. From then on, keys count as answers. */
  async function waitForChoices(): Promise<void> {
    await expect.poll(() => questionPrompt.show(80)).not.toBeNull();
  }
}

describe("a question at the terminal", () => {
  it("shows the tool, its effect, the exact input and the choices", async () => {
    const { questionPrompt, printedLines } = await open();
    expect(printedLines).toEqual(["? writer asks to use command.run (runs a program)", "    $ rm -rf build"]);
    expect(questionPrompt.show(80)?.rows).toEqual(["  [y]es  [n]o  [e]dit  [a]lways in this session  [s]top the run"]);
    expect(questionPrompt.show(40)?.rows).toEqual([
      "  [y]es  [n]o  [e]dit",
      "  [a]lways in this session",
      "  [s]top the run",
    ]);
  });

  it.each([
    ["y", { decision: "allow" }],
    ["a", { decision: "allow", remember: "session" }],
    ["s", { decision: "stop" }],
  ])("sends the decision that the key %s stands for", async (key, decision) => {
    const { sentDecisions, type, questionPrompt } = await open();
    type(key);
    expect(sentDecisions).toEqual([decision]);
    await expect.poll(() => questionPrompt.isAsking).toBe(false);
  });

  it("asks for a reason after `no` and sends it", async () => {
    const { sentDecisions, type, press, printedLines, questionPrompt } = await open();
    type("n");
    expect(questionPrompt.show(80)?.rows[0]).toContain("Why not");
    type("too risky");
    press("enter");
    expect(sentDecisions).toEqual([{ decision: "deny", message: "too risky" }]);
    await expect.poll(() => printedLines.at(-1)).toBe("  denied: too risky");
  });

  it("lets the person edit the input, and reports invalid JSON", async () => {
    const { sentDecisions, type, press, questionPrompt } = await open();
    type("e");
    press("backspace");
    press("enter");
    expect(sentDecisions).toEqual([]);
    expect(questionPrompt.show(80)?.rows[0]).toContain("Not valid JSON");
    for (let n = 0; n < 40; n++) press("backspace");
    type('{"command": "ls"}');
    press("enter");
    expect(sentDecisions).toEqual([{ decision: "allow", input: { command: "ls" } }]);
  });

  it("goes back to the choices with Escape", async () => {
    const { sentDecisions, type, press, questionPrompt } = await open();
    type("n");
    press("escape");
    expect(questionPrompt.show(80)?.rows[0]).toContain("[y]es");
    expect(sentDecisions).toEqual([]);
  });

  it("says who answered elsewhere, and closes the question", async () => {
    const { questionPrompt, printedLines } = await open();
    questionPrompt.onDecision({
      type: "permission_decision",
      request_id: "q1",
      decision: "deny",
      by: "alice",
      message: "no",
    });
    expect(printedLines.at(-1)).toBe("  denied: no by alice, elsewhere");
    expect(questionPrompt.isAsking).toBe(false);
  });

  it("says that the run was stopped if that closed the question", async () => {
    const superseded = { type: "permission_decision", request_id: "q1", decision: "superseded", by: "drover" } as const;
    const stopped = await open();
    stopped.type("e");
    stopped.questionPrompt.onDecision(superseded, true);
    expect(stopped.printedLines.at(-1)).toBe("  not answered: the run was stopped");
    const withdrawn = await open();
    withdrawn.questionPrompt.onDecision(superseded);
    expect(withdrawn.printedLines.at(-1)).toBe("  not answered: the run no longer waits for it");
  });

  it("says who answered first if this answer was too late", async () => {
    const tooLate = new RequestError({ code: "DROVER-API-031", message: "alice answered with allow." });
    const { questionPrompt, printedLines, type } = await open(() => Promise.reject(tooLate));
    type("n");
    questionPrompt.handle({ name: "enter" });
    await expect.poll(() => printedLines.at(-1)).toBe("  ! alice answered with allow.");
    expect(questionPrompt.isAsking).toBe(false);
  });

  it("asks several questions one after another", async () => {
    const { questionPrompt, printedLines, type, sentDecisions, waitForChoices } = await open();
    questionPrompt.ask({ ...question, request_id: "q2", tool: "file.write" });
    expect(printedLines.join("\n")).not.toContain("file.write");
    type("y");
    await expect.poll(() => printedLines.join("\n")).toContain("file.write");
    await waitForChoices();
    type("s");
    expect(sentDecisions).toEqual([{ decision: "allow" }, { decision: "stop" }]);
  });

  it("ignores keys typed before the choices appeared", async () => {
    const sentDecisions: Decision[] = [];
    const questionPrompt = createQuestionPrompt({
      agent: "writer",
      answer: async (_, decision) => sentDecisions.push(decision),
      print: () => undefined,
      onChange: () => undefined,
      style: createStyle(false),
      idleMs: 60_000,
    });
    questionPrompt.ask(question);
    expect(questionPrompt.handle({ name: "text", text: "y" })).toBe(false);
    expect(questionPrompt.show(80)).toBeNull();
    expect(sentDecisions).toEqual([]);
    questionPrompt.clear();
  });

  it("shows the complete input on request", async () => {
    const { questionPrompt, printedLines, type } = await open();
    questionPrompt.clear();
    printedLines.length = 0;
    questionPrompt.ask({
      ...question,
      input: { command: Array.from({ length: 50 }, (_, n) => `line ${n}`).join("\n") },
    });
    expect(printedLines.at(-1)).toContain("20 more lines");
    await expect.poll(() => questionPrompt.show(80)).not.toBeNull();
    type("v");
    expect(printedLines.at(-1)).toContain("line 49");
  });
});
