import { describe, expect, it } from "vitest";
import { createTerminalScreen } from "../../../test/fixtures/cli/terminal-screen.ts";
import { createScreen } from "./screen.ts";

function open(columns = 20, rows = 10) {
  const terminal = createTerminalScreen(columns);
  const size = { columns, rows };
  return {
    terminal,
    size,
    screen: createScreen(
      (text) => terminal.write(text),
      () => size,
    ),
  };
}

const prompt = { rows: ["status", "> typed"], cursor: { row: 1, column: 7 } };

describe("the screen", () => {
  it("prints text above the live rows", () => {
    const { terminal, screen } = open();
    screen.setLiveArea(prompt);
    screen.print("one\ntwo\n");
    expect(terminal.lines).toEqual(["one", "two", "status", "> typed"]);
    expect(terminal.cursor).toEqual({ row: 3, column: 7 });
  });

  it("adds text to an unfinished line", () => {
    const { terminal, screen } = open();
    screen.setLiveArea(prompt);
    screen.print("hel");
    screen.print("lo wor");
    expect(terminal.lines).toEqual(["hello wor", "status", "> typed"]);
    screen.print("ld\n");
    expect(terminal.lines).toEqual(["hello world", "status", "> typed"]);
  });

  it("wraps a growing line between words", () => {
    const { terminal, screen } = open(12);
    screen.setLiveArea(prompt);
    for (const piece of ["  one ", "two th", "ree", " four"]) screen.print(piece);
    screen.print("\n");
    expect(terminal.lines).toEqual(["  one two", "  three", "  four", "status", "> typed"]);
  });

  it("redraws the live rows when their number changes", () => {
    const { terminal, screen } = open();
    screen.print("text\n");
    screen.setLiveArea({ rows: ["a", "b", "c"], cursor: { row: 0, column: 0 } });
    screen.setLiveArea({ rows: ["d"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["text", "d"]);
    screen.setLiveArea({ rows: ["e", "f"], cursor: null });
    expect(terminal.lines).toEqual(["text", "e", "f"]);
  });

  it("erases all live rows after the terminal has become narrower", () => {
    const size = { columns: 20, rows: 10 };
    const wide = createTerminalScreen(20);
    let target = wide;
    const screen = createScreen(
      (text) => target.write(text),
      () => size,
    );
    screen.setLiveArea({ rows: ["fifteen letters", "> typed"], cursor: { row: 1, column: 2 } });
    // The terminal itself wraps the first row into two.
    size.columns = 10;
    const narrow = createTerminalScreen(10);
    narrow.write("fifteen letters\n> ");
    target = narrow;
    screen.setLiveArea({ rows: ["> typed"], cursor: { row: 0, column: 7 } });
    expect(narrow.lines).toEqual(["> typed"]);
  });

  it("shows the last rows if not all fit", () => {
    const { terminal, screen } = open(20, 4);
    screen.setLiveArea({ rows: ["1", "2", "3", "4", "5"], cursor: { row: 4, column: 1 } });
    expect(terminal.lines).toEqual(["3", "4", "5"]);
    screen.setLiveArea({ rows: ["x"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["x"]);
  });

  it("removes the live rows while other code writes to the terminal", () => {
    const { terminal, screen } = open();
    screen.setLiveArea(prompt);
    screen.print("open");
    screen.writeAbove(() => terminal.write("other output\n"));
    expect(terminal.lines).toEqual(["open", "other output", "status", "> typed"]);
  });

  it("leaves only the permanent text when it is closed", () => {
    const { terminal, screen } = open();
    screen.setLiveArea(prompt);
    screen.print("text");
    screen.close();
    expect(terminal.lines).toEqual(["text", ""]);
  });
});
