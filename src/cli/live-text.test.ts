import { describe, expect, it } from "vitest";
import { createLiveText, type LiveText } from "./live-text.ts";

/** Returns what the terminal shows. */
function render(useLiveText: (live: LiveText) => void): string {
  let printed = "";
  useLiveText(createLiveText((text) => (printed += text)));
  return printed;
}

describe("live text", () => {
  it("is shown once, although it arrives in pieces and as a whole", () => {
    const text = render((live) => {
      live.showPiece("Hel");
      live.showPiece("lo\nyou");
      live.showRecordedMessage("Hello\nyou");
      live.showRecordedMessage("Without pieces.");
    });
    expect(text).toBe("  Hello\n  you\n  Without pieces.\n");
  });

  it("is completed if its last pieces are missing, and repeated if its first pieces are missing", () => {
    const completed = render((live) => {
      live.showPiece("Hello");
      live.showRecordedMessage("Hello you");
    });
    expect(completed).toBe("  Hello you\n");
    const repeated = render((live) => {
      live.showPiece("lo you");
      live.showRecordedMessage("Hello you");
      live.showPiece("Next");
      live.showRecordedMessage("Next");
    });
    expect(repeated).toBe("  lo you\n  Hello you\n  Next\n");
  });

  it("may be ahead of the record by more than one message", () => {
    const text = render((live) => {
      live.showPiece("One. ");
      live.showPiece("Two.");
      live.showRecordedMessage("One. ");
      live.showRecordedMessage("Two.");
    });
    expect(text).toBe("  One. Two.\n");
  });

  it("is not interrupted by other lines, which appear after it", () => {
    const text = render((live) => {
      live.showPiece("I lo");
      live.showLine("> Read a.txt");
      live.showPiece("ok");
      live.showRecordedMessage("I look");
      live.showLine("< done");
      live.showRecordedMessage("Done");
    });
    expect(text).toBe("  I look\n  > Read a.txt\n  < done\n  Done\n");
  });

  it("continues on a new line after other output", () => {
    const text = render((live) => {
      live.endLine();
      live.showPiece("I lo");
      live.endLine();
      live.showPiece("ok");
      live.showRecordedMessage("I look");
    });
    expect(text).toBe("  I lo\n  ok\n");
  });

  it("is followed by the waiting lines if the whole message never arrives", () => {
    const text = render((live) => {
      live.showPiece("I lo");
      live.showLine("cancelled");
      live.end();
    });
    expect(text).toBe("  I lo\n  cancelled\n");
  });

  it("is not shown again if its pieces arrive after the whole message", () => {
    const text = render((live) => {
      live.showPiece("I l");
      live.showRecordedMessage("I look");
      live.showPiece("ook");
      live.showPiece("Done");
      live.showRecordedMessage("Done");
    });
    expect(text).toBe("  I look\n  Done\n");
  });

  it("is not shown again if its pieces arrive late and those of the message before were lost", () => {
    const text = render((live) => {
      live.showRecordedMessage("I look");
      live.showRecordedMessage("Done");
      live.showPiece("Do");
      live.showPiece("ne");
      live.end();
    });
    expect(text).toBe("  I look\n  Done\n");
  });

  it("follows the result of the tool that ran before it, even if its pieces arrive first", () => {
    const text = render((live) => {
      live.startTool("t1");
      live.showLine("> Read a.txt");
      live.showPiece("Do");
      live.showPiece("ne");
      live.showLine("< failed");
      live.endTool("t1");
      live.showRecordedMessage("Done");
    });
    expect(text).toBe("  > Read a.txt\n  < failed\n  Done\n");
  });

  it("is shown from the record if a tool that runs at the same time has not returned", () => {
    const text = render((live) => {
      live.startTool("t1");
      live.showPiece("Do");
      live.showRecordedMessage("Done");
      live.endTool("t1");
    });
    expect(text).toBe("  Done\n");
  });

  it("cannot redraw the terminal", () => {
    const text = render((live) => {
      live.showPiece("a\u001b[2Jb\u0007");
      live.showLine("\u001b]0;title\u0007x");
      live.end();
    });
    expect(text).toBe("  a[2Jb\n  ]0;titlex\n");
  });
});
