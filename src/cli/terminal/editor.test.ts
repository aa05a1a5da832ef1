import { describe, expect, it } from "vitest";
import { createEditor } from "./editor.ts";
import type { Key, KeyName } from "./keys.ts";

function open(history: string[] = []) {
  const submittedTexts: string[] = [];
  const editor = createEditor((text) => submittedTexts.push(text), history);
  const press = (...keys: (KeyName | { text: string })[]): void => {
    for (const key of keys) {
      const pressed: Key = typeof key === "string" ? { name: key } : { name: "text", ...key };
      editor.handle(pressed);
    }
  };
  return { editor, submittedTexts, press };
}

describe("the editor", () => {
  it("submits the text with Enter and clears it", () => {
    const { editor, submittedTexts, press } = open();
    press({ text: "hello" }, "enter");
    expect(submittedTexts).toEqual(["hello"]);
    expect(editor.text).toBe("");
  });

  it("inserts and deletes at the cursor", () => {
    const { editor, press } = open();
    press({ text: "helo" }, "left", { text: "l" }, "home", "delete", { text: "H" }, "end", "backspace");
    expect(editor.text).toBe("Hell");
  });

  it("deletes words, and the line before and after the cursor", () => {
    const { editor, press } = open();
    press({ text: "one two  three" }, "delete-word", "delete-word");
    expect(editor.text).toBe("one ");
    press({ text: "two" }, "word-left", "delete-after");
    expect(editor.text).toBe("one ");
    press("delete-before");
    expect(editor.text).toBe("");
  });

  it("treats a grapheme of several code points as one character", () => {
    const { editor, press } = open();
    press({ text: "a👨‍👩‍👧b" }, "left", "backspace");
    expect(editor.text).toBe("ab");
  });

  it("keeps the lines of a paste, without control characters", () => {
    const { editor, submittedTexts, press } = open();
    press({ text: "one\n\ttwo\u001b[2J" });
    expect(submittedTexts).toEqual([]);
    expect(editor.text).toBe("one\n  two[2J");
  });

  it("starts a new line after a backslash", () => {
    const { submittedTexts, press } = open();
    press({ text: "one\\" }, "enter", { text: "two" }, "enter");
    expect(submittedTexts).toEqual(["one\ntwo"]);
  });

  it("steps through the history and back to the current text", () => {
    const { editor, press } = open(["first", "second"]);
    press({ text: "draft" }, "up");
    expect(editor.text).toBe("second");
    press("up", "up");
    expect(editor.text).toBe("first");
    press("down", "down");
    expect(editor.text).toBe("draft");
  });

  it("moves between lines before it steps through the history", () => {
    const { editor, press } = open(["old"]);
    press({ text: "one\ntwo" }, "up", { text: "!" });
    expect(editor.text).toBe("one!\ntwo");
    press("up");
    expect(editor.text).toBe("old");
  });

  it("shows the cursor on a wrapped line", () => {
    const { editor, press } = open();
    press({ text: "abcdefgh" }, "left");
    const { rows, cursor } = editor.show("> ", 6);
    expect(rows).toEqual(["> abc", "  def", "  gh"]);
    expect(cursor).toEqual({ row: 2, column: 3 });
  });
});
