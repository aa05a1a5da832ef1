import { describe, expect, it } from "vitest";
import type { RunEvent, StoredEvent } from "../../model/event.ts";
import { newRun } from "../../model/new-run.ts";
import type { Run } from "../../model/run.ts";
import { createStyle } from "../terminal/style.ts";
import { createTurnView } from "./turn-view.ts";

function open(columns = 80) {
  let printed = "";
  let seq = 0;
  const view = createTurnView({
    print: (text) => (printed += text),
    columns: () => columns,
    style: createStyle(false),
  });
  return {
    view,
    printed: () => printed.split("\n").map((line) => line.trimEnd()),
    event(event: RunEvent, ms = 0): void {
      const at = new Date(Date.parse("2026-01-31T12:00:00Z") + ms).toISOString();
      const stored: StoredEvent = { run_id: "r", seq: ++seq, attempt: 1, n: seq, at, cursor: seq, event };
      view.showEvent(stored);
    },
  };
}

function createEndedRun(run: Partial<Run>): Run {
  const fields = { run_id: "r", agent_name: "a", created_by: "me", created_at: "2026-01-31T12:00:00Z" };
  return { ...newRun(fields), ...run };
}

const call = { type: "tool_use", tool_use_id: "t1", name: "command.run", input: { command: "npm test" } } as const;
const completed = {
  status: "completed",
  started_at: "2026-01-31T12:00:00Z",
  finished_at: "2026-01-31T12:00:03Z",
} as const;

describe("a chat turn", () => {
  it("shows a message once, although it arrives in pieces and then as a whole", () => {
    const { view, event, printed } = open();
    view.showPiece({ kind: "assistant", text: "Hel" });
    view.showPiece({ kind: "assistant", text: "lo" });
    event({ type: "assistant", text: "Hello there" });
    view.end(createEndedRun({ ...completed, result_text: "Hello there" }));
    expect(printed()).toEqual(["  Hello there", "  3.0s", ""]);
  });

  it("shows a tool call with its input, duration and result", () => {
    const { view, event, printed } = open();
    event(call);
    expect(view.activeTools).toEqual(["command.run npm test"]);
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output: { ok: true } }, 1500);
    expect(view.activeTools).toEqual([]);
    event({ ...call, tool_use_id: "t2" });
    const output = { ok: false, error: { code: "permission_denied", message: "Not\nallowed." } };
    event({ type: "tool_result", tool_use_id: "t2", is_error: true, output }, 20);
    expect(printed()).toEqual([
      "  ✓ command.run npm test 1.5s",
      "  ✗ command.run npm test 20ms",
      "    Not allowed.",
      "",
    ]);
  });

  it("shows the input as the person edited it", () => {
    const { event, printed } = open();
    event(call);
    const decision = { type: "permission_decision", request_id: "t1", decision: "allow", by: "me" } as const;
    event({ ...decision, input: { command: "npm ci" } });
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output: "" });
    expect(printed()[0]).toBe("  ✓ command.run npm ci 0ms");
  });

  it("shows tool calls before the message that follows them, although its pieces arrive first", () => {
    const { view, event, printed } = open();
    event({ type: "assistant", text: "First." });
    view.showPiece({ kind: "assistant", text: "Second." });
    event(call);
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output: "" });
    event({ type: "assistant", text: "Second." });
    expect(printed()).toEqual(["  First.", "  ✓ command.run npm test 0ms", "  Second.", ""]);
  });

  it("lists the tool calls that a stopped run did not finish", () => {
    const { view, event, printed } = open();
    event(call);
    view.end(createEndedRun({ status: "cancelled" }));
    expect(printed().slice(0, 2)).toEqual(["  ✗ command.run npm test did not finish", "  stopped"]);
  });

  it("does not count the wait for an answer as tool time", () => {
    const { event, printed } = open();
    event(call);
    event({ type: "permission_decision", request_id: "t1", decision: "allow", by: "me" }, 60_000);
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output: "" }, 60_500);
    expect(printed()[0]).toBe("  ✓ command.run npm test 500ms");
  });

  it("does not show an interrupted command as a success, and says once who stopped the turn", () => {
    const { view, event, printed } = open();
    event(call);
    event({ type: "status", status: "stopping", reason: "Stopped by ann." });
    const output = { ok: true, exit_code: null, signal: "SIGTERM", stopped: "user" };
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output }, 3500);
    view.end(createEndedRun({ status: "cancelled" }));
    expect(printed().slice(0, 2)).toEqual(["  ✗ command.run npm test stopped after 3.5s", "  stopped by ann."]);
  });

  it("says why a turn failed", () => {
    const { view, printed } = open();
    view.end(createEndedRun({ status: "failed", reason: "provider_auth", error: "The key is wrong." }));
    expect(printed()[0]).toBe("  failed (provider_auth): The key is wrong.");
  });

  it("shows the answer of an executor that reports no messages", () => {
    const { view, printed } = open();
    view.end(createEndedRun({ ...completed, result_text: "The answer." }));
    expect(printed()[0]).toBe("  The answer.");
  });

  it("shows the usage of the turn", () => {
    const { view, event, printed } = open();
    event({ type: "usage", usage: { input_tokens: 10, output_tokens: 2, cost_usd: 0.001 } });
    event({ type: "usage", usage: { input_tokens: 5, output_tokens: 1, cost_usd: 0.002 } });
    event({ type: "file", path: "a", size: 1, sha256: "", media_type: "" });
    view.end(createEndedRun(completed));
    expect(printed()[0]).toBe("  3.0s · 15 tokens in, 3 out · $0.0030 · 1 file (type /files to list them)");
  });

  it("truncates a long input to one row", () => {
    const { event, printed } = open(40);
    event({ ...call, input: { command: "x".repeat(100) } });
    event({ type: "tool_result", tool_use_id: "t1", is_error: false, output: "" });
    expect(printed()[0]!.length).toBeLessThan(40);
    expect(printed()[0]).toContain("…");
  });

  it("strips escape sequences from tool output", () => {
    const { event, printed } = open();
    event({ ...call, name: "evil\u001b[2J", input: { command: "a\u001b]0;title\u0007" } });
    event({ type: "tool_result", tool_use_id: "t1", is_error: true, output: "bad\u001b[1A" });
    event({ type: "error", message: "worse\u001b[1A" });
    expect(printed().join("")).not.toContain("\u001b");
  });
});
