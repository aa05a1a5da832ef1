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

describe("a screen", () => {
  it("prints text above the rows at the bottom", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("one\ntwo\n");
    expect(terminal.lines).toEqual(["one", "two", "status", "> typed"]);
    expect(terminal.cursor).toEqual({ row: 3, column: 7 });
  });

  it("continues a line that has no end yet", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("hel");
    screen.print("lo wor");
    expect(terminal.lines).toEqual(["hello wor", "status", "> typed"]);
    screen.print("ld\n");
    expect(terminal.lines).toEqual(["hello world", "status", "> typed"]);
  });

  it("breaks a line between words as it grows", () => {
    const { terminal, screen } = open(12);
    screen.setLive(prompt);
    for (const piece of ["  one ", "two th", "ree", " four"]) screen.print(piece);
    screen.print("\n");
    expect(terminal.lines).toEqual(["  one two", "  three", "  four", "status", "> typed"]);
  });

  it("draws the rows at the bottom again where there are more or fewer of them", () => {
    const { terminal, screen } = open();
    screen.print("text\n");
    screen.setLive({ rows: ["a", "b", "c"], cursor: { row: 0, column: 0 } });
    screen.setLive({ rows: ["d"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["text", "d"]);
    screen.setLive({ rows: ["e", "f"], cursor: null });
    expect(terminal.lines).toEqual(["text", "e", "f"]);
  });

  it("erases all of its rows after the terminal became narrower and broke them", () => {
    const columns = { columns: 20, rows: 10 };
    const wide = terminalScreen(20);
    let target = wide;
    const screen = createScreen(
      (text) => target.write(text),
      () => columns,
    );
    screen.setLive({ rows: ["fifteen letters", "> typed"], cursor: { row: 1, column: 2 } });
    // the terminal itself breaks the first row in two
    columns.columns = 10;
    const narrow = terminalScreen(10);
    narrow.write("fifteen letters\n> ");
    target = narrow;
    screen.setLive({ rows: ["> typed"], cursor: { row: 0, column: 7 } });
    expect(narrow.lines).toEqual(["> typed"]);
  });

  it("shows the end of what does not fit the height", () => {
    const { terminal, screen } = open(20, 4);
    screen.setLive({ rows: ["1", "2", "3", "4", "5"], cursor: { row: 4, column: 1 } });
    expect(terminal.lines).toEqual(["3", "4", "5"]);
    screen.setLive({ rows: ["x"], cursor: { row: 0, column: 1 } });
    expect(terminal.lines).toEqual(["x"]);
  });

  it("makes way for what others write", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("open");
    screen.writeAbove(() => terminal.write("theirs\n"));
    expect(terminal.lines).toEqual(["open", "theirs", "status", "> typed"]);
  });

  it("leaves nothing but the text", () => {
    const { terminal, screen } = open();
    screen.setLive(prompt);
    screen.print("text");
    screen.close();
    expect(terminal.lines).toEqual(["text", ""]);
  });
});
