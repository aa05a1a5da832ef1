import { describe, expect, it } from "vitest";
import { terminalScreen } from "../../../test/fixtures/cli/terminal-screen.ts";
import { createScreen } from "./screen.ts";

function open(columns = 20, rows = 10) {
  const terminal = terminalScreen(columns);
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
    screen.setLive(prompt);
    screen.print("one\ntwo\n");
    expect(terminal.lines).toEqual(["one", "two", "status", "> typed"]);
    expect(terminal.cursor).toEqual({ row: 3, column: 7 });
  });

  it("continues an unfinished line", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("hel");
    screen.print("lo wor");
    expect(terminal.lines).toEqual(["hello wor", "status", "> typed"]);
    screen.print("ld\n");
    expect(terminal.lines).toEqual(["hello world", "status", "> typed"]);
  });

  it("wraps a growing line between words", () => {
    const { terminal, screen } = open(12);
    screen.setLive(prompt);
    for (const piece of ["  one ", "two th", "ree", " four"]) screen.print(piece);
    screen.print("\n");
    expect(terminal.lines).toEqual(["  one two", "  three", "  four", "status", "> typed"]);
  });

  it("redraws the live rows when their number changes", () => {
    const { terminal, screen } = open();
    screen.print("text\n");
    screen.setLive({ rows: ["a", "b", "c"], cursor: { row: 0, column: 0 } });
    screen.setLive({ rows: ["d"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["text", "d"]);
    screen.setLive({ rows: ["e", "f"], cursor: null });
    expect(terminal.lines).toEqual(["text", "e", "f"]);
  });

  it("erases all live rows after the terminal became narrower", () => {
    const columns = { columns: 20, rows: 10 };
    const wide = terminalScreen(20);
    let target = wide;
    const screen = createScreen(
      (text) => target.write(text),
      () => columns,
    );
    screen.setLive({ rows: ["fifteen letters", "> typed"], cursor: { row: 1, column: 2 } });
    // The terminal itself wraps the first row into two.
    columns.columns = 10;
    const narrow = terminalScreen(10);
    narrow.write("fifteen letters\n> ");
    target = narrow;
    screen.setLive({ rows: ["> typed"], cursor: { row: 0, column: 7 } });
    expect(narrow.lines).toEqual(["> typed"]);
  });

  it("shows the last rows if not all fit", () => {
    const { terminal, screen } = open(20, 4);
    screen.setLive({ rows: ["1", "2", "3", "4", "5"], cursor: { row: 4, column: 1 } });
    expect(terminal.lines).toEqual(["3", "4", "5"]);
    screen.setLive({ rows: ["x"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["x"]);
  });

  it("removes the live rows while others write", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("open");
    screen.writeAbove(() => terminal.write("theirs\n"));
    expect(terminal.lines).toEqual(["open", "theirs", "status", "> typed"]);
  });

  it("leaves only the text when closed", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("text");
    screen.close();
    expect(terminal.lines).toEqual(["text", ""]);
  });
});
