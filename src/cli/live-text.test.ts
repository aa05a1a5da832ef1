import { describe, expect, it } from "vitest";
import { createLiveText, type LiveText } from "./live-text.ts";

function shown(talk: (live: LiveText) => void): string {
  let text = "";
  talk(createLiveText((more) => (text += more)));
  return text;
}

describe("live text", () => {
  it("is shown once, although it arrives in pieces and as a whole", () => {
    const text = shown((live) => {
      live.piece("Hel");
      live.piece("lo\nyou");
      live.whole("Hello\nyou");
      live.whole("Without pieces.");
    });
    expect(text).toBe("  Hello\n  you\n  Without pieces.\n");
  });

  it("is completed if the last pieces are missing, and repeated if earlier ones are", () => {
    const completed = shown((live) => {
      live.piece("Hello");
      live.whole("Hello you");
    });
    expect(completed).toBe("  Hello you\n");
    const repeated = shown((live) => {
      live.piece("lo you");
      live.whole("Hello you");
      live.piece("Next");
      live.whole("Next");
    });
    expect(repeated).toBe("  lo you\n  Hello you\n  Next\n");
  });

  it("may be ahead of the record by more than one message", () => {
    const text = shown((live) => {
      live.piece("One. ");
      live.piece("Two.");
      live.whole("One. ");
      live.whole("Two.");
    });
    expect(text).toBe("  One. Two.\n");
  });

  it("is not interrupted by other lines, which follow it", () => {
    const text = shown((live) => {
      live.piece("I lo");
      live.line("> Read a.txt");
      live.piece("ok");
      live.whole("I look");
      live.line("< done");
      live.whole("Done");
    });
    expect(text).toBe("  I look\n  > Read a.txt\n  < done\n  Done\n");
  });

  it("continues on a new line after other output", () => {
    const text = shown((live) => {
      live.endLine();
      live.piece("I lo");
      live.endLine();
      live.piece("ok");
      live.whole("I look");
    });
    expect(text).toBe("  I lo\n  ok\n");
  });

  it("is followed by the waiting lines if the whole message never arrives", () => {
    const text = shown((live) => {
      live.piece("I lo");
      live.line("cancelled");
      live.end();
    });
    expect(text).toBe("  I lo\n  cancelled\n");
  });

  it("is not shown again if its pieces arrive after the whole message", () => {
    const text = shown((live) => {
      live.piece("I l");
      live.whole("I look");
      live.piece("ook");
      live.piece("Done");
      live.whole("Done");
    });
    expect(text).toBe("  I look\n  Done\n");
  });

  it("cannot redraw the terminal", () => {
    const text = shown((live) => {
      live.piece("a\u001b[2Jb\u0007");
      live.line("\u001b]0;title\u0007x");
      live.end();
    });
    expect(text).toBe("  a[2Jb\n  ]0;titlex\n");
  });
});
