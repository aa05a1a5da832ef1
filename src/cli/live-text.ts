import { stripControlCharacters } from "./strip-control-characters.ts";

/** Shows an agent's message as it streams in, and one line for each action of the agent. */
export interface LiveText {
  /** Shows a piece of a message as it arrives. Delivery is best effort: pieces may be missing. */
  showPiece(text: string): void;
  /** Shows a recorded message, except for the part that pieces have already shown. */
  showRecordedMessage(text: string): void;
  /** Until this tool has returned, holds new pieces back: they belong to a message that follows the tool's result. */
  startTool(tool_use_id: string): void;
  /** Call this after the line of the tool's result. */
  endTool(tool_use_id: string): void;
  /** Shows a line. If a message is being shown in pieces, the line waits until the whole message is recorded. */
  showLine(text: string): void;
  /** Ends an unfinished line, so that other output can start on a new one. */
  endLine(): void;
  /** Shows the waiting lines and ends an unfinished line. */
  end(): void;
}

export function createLiveText(print: (text: string) => void): LiveText {
  /** Text that was shown in pieces, but is not recorded yet. */
  let unrecorded = "";
  /** Text that was shown from the record, by message. Its pieces may still arrive and must not be shown again. */
  let expectedTexts: string[] = [];
  const activeTools = new Set<string>();
  let heldText = "";
  let pendingLines: string[] = [];
  let isLineOpen = false;

  const printText = (text: string): void => {
    if (text === "") return;
    print(`${isLineOpen ? "" : indent}${stripControlCharacters(text).replaceAll("\n", `\n${indent}`)}`);
    isLineOpen = true;
  };
  const endLine = (): void => {
    if (isLineOpen) print("\n");
    isLineOpen = false;
  };
  const showPendingLines = (): void => {
    if (pendingLines.length > 0) endLine();
    for (const text of pendingLines) print(`${indent}${stripControlCharacters(text, { colours: true })}\n`);
    pendingLines = [];
  };
  /** Returns the part of the piece that was not yet shown from the record. */
  const removeShown = (piece: string): string => {
    // The pieces of the first messages may have been lost.
    for (let first = 0; first < expectedTexts.length; first++) {
      const expected = expectedTexts.slice(first).join("");
      if (expected.startsWith(piece)) {
        expectedTexts = [expected.slice(piece.length)].filter((rest) => rest !== "");
        return "";
      }
      if (piece.startsWith(expected)) {
        expectedTexts = [];
        return piece.slice(expected.length);
      }
    }
    expectedTexts = [];
    return piece;
  };
  const showPiece = (piece: string): void => {
    const text = removeShown(piece);
    printText(text);
    unrecorded += text;
  };
  const showHeldText = (): void => {
    const text = heldText;
    heldText = "";
    if (text !== "") showPiece(text);
  };
  return {
    showPiece(piece) {
      if (activeTools.size > 0) heldText += piece;
      else showPiece(piece);
    },
    startTool: (tool_use_id) => void activeTools.add(tool_use_id),
    endTool(tool_use_id) {
      activeTools.delete(tool_use_id);
      if (activeTools.size === 0) showHeldText();
    },
    showRecordedMessage(text) {
      showHeldText();
      if (unrecorded.startsWith(text)) {
        // The pieces may be ahead of the record.
        unrecorded = unrecorded.slice(text.length);
        if (unrecorded === "") endLine();
        return showPendingLines();
      }
      const unshown = text.startsWith(unrecorded) ? text.slice(unrecorded.length) : null;
      if (unshown === null) endLine();
      printText(unshown ?? text);
      endLine();
      if (unshown) expectedTexts.push(unshown);
      unrecorded = "";
      showPendingLines();
    },
    showLine(text) {
      pendingLines.push(text);
      if (unrecorded === "") showPendingLines();
    },
    endLine,
    end() {
      showPendingLines();
      endLine();
    },
  };
}

const indent = "  ";
