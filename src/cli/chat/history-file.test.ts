import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { chatHistoryFile, recordDirectory } from "../../model/state-layout.ts";
import { openHistory } from "./history-file.ts";

function createDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "drover-history-"));
  mkdirSync(recordDirectory(path));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const failOnError = (message: string): void => {
  throw new Error(message);
};

describe("the chat history", () => {
  it("is kept for the next chat, readable only by its owner", () => {
    const state = join(createDirectory(), "state");
    const history = openHistory(state, failOnError);
    history.add("one\nof two lines");
    history.add("two");
    history.add("two");
    history.add("  ");
    expect(openHistory(state, failOnError).lines).toEqual(["one\nof two lines", "two"]);
    expect(statSync(chatHistoryFile(recordDirectory(state))).mode & 0o777).toBe(0o600);
  });

  it("keeps the input of two concurrent chats", () => {
    const state = createDirectory();
    const [first, second] = [openHistory(state, failOnError), openHistory(state, failOnError)];
    first.add("from one");
    second.add("from two");
    expect(openHistory(state, failOnError).lines).toEqual(["from one", "from two"]);
  });

  it("keeps the last 500 entries, and at most 256 kB", () => {
    const state = createDirectory();
    writeFileSync(
      chatHistoryFile(recordDirectory(state)),
      Array.from({ length: 600 }, (_, n) => `${JSON.stringify(`line ${n}`)}\n`).join(""),
    );
    openHistory(state, failOnError).add("the last");
    const { lines } = openHistory(state, failOnError);
    expect(lines.length).toBe(500);
    expect(lines.at(-1)).toBe("the last");
    openHistory(state, failOnError).add("x".repeat(200_000));
    openHistory(state, failOnError).add("y".repeat(100_000));
    expect(openHistory(state, failOnError).lines).toEqual(["y".repeat(100_000)]);
  });

  it("skips damaged lines", () => {
    const state = createDirectory();
    writeFileSync(chatHistoryFile(recordDirectory(state)), '"good"\nhalf a li\n{"no": "text"}\n');
    expect(openHistory(state, failOnError).lines).toEqual(["good"]);
  });

  it("does not follow a symbolic link, reports it once, and keeps the history in memory", () => {
    const state = createDirectory();
    const target = join(state, "target");
    writeFileSync(target, '"secret"\n');
    symlinkSync(target, chatHistoryFile(recordDirectory(state)));
    const errors: string[] = [];
    const history = openHistory(state, (message) => errors.push(message));
    history.add("typed");
    expect(history.lines).toEqual(["typed"]);
    expect(errors.length).toBe(1);
    expect(readFileSync(target, "utf8")).toBe('"secret"\n');
  });
});
