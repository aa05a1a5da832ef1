import { stripControlCharacters } from "./strip-control-characters.ts";

/** Shows an agent's message while it is written, and one line for each action of the agent. */
export interface LiveText {
  /** Shows a piece of a message as it arrives. Delivery is best effort: pieces may be missing. */
  showPiece(text: string): void;
  /** Shows a recorded message, except for the part that pieces have already shown. */
  showWhole(text: string): void;
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
  /** Text that was shown from the record. Its pieces may still arrive and must not be shown again. */
  let expectedPieces = "";
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
  return {
    showPiece(piece) {
      const alreadyShown = expectedPieces.startsWith(piece)
        ? piece
        : piece.startsWith(expectedPieces)
          ? expectedPieces
          : "";
      const text = piece.slice(alreadyShown.length);
      expectedPieces = text === "" ? expectedPieces.slice(alreadyShown.length) : "";
      printText(text);
      unrecorded += text;
    },
    showWhole(text) {
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
      expectedPieces += unshown ?? "";
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
