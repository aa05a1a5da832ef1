import { emitKeypressEvents } from "node:readline";

/** A key press. `text` is typed or pasted text. A paste arrives as one key. */
export type Key = { name: "text"; text: string } | { name: KeyName; text?: never };

export type KeyName =
  | "enter"
  | "newline"
  | "backspace"
  | "delete"
  | "left"
  | "right"
  | "word-left"
  | "word-right"
  | "up"
  | "down"
  | "home"
  | "end"
  | "delete-word"
  | "delete-before"
  | "delete-after"
  | "interrupt"
  | "end-of-input"
  | "redraw"
  | "escape";

/** xterm sequences. With bracketed paste, the terminal encloses pasted text in `paste-start` and `paste-end`. */
const enableBracketedPaste = "\u001b[?2004h";
const disableBracketedPaste = "\u001b[?2004l";

/** Reads single keys in raw mode until it is closed. */
export function openKeyboard(
  stdin: NodeJS.ReadStream,
  writeToTerminal: (text: string) => void,
  onKey: (key: Key) => void,
) {
  let paste: string | null = null;
  const onKeypress = (text: string | undefined, press: KeyPress): void => {
    if (press.name === "paste-start") paste = "";
    else if (press.name === "paste-end") {
      const content = (paste ?? "").replaceAll(/\r\n?/g, "\n");
      paste = null;
      if (content !== "") onKey({ name: "text", text: content });
    } else if (paste !== null) paste += press.sequence ?? text ?? "";
    else {
      const key = toKey(text, press);
      if (key) onKey(key);
    }
  };
  emitKeypressEvents(stdin);
  stdin.on("keypress", onKeypress);
  stdin.setRawMode(true);
  stdin.resume();
  writeToTerminal(enableBracketedPaste);
  let isOpen = true;
  return {
    close(): void {
      if (!isOpen) return;
      isOpen = false;
      writeToTerminal(disableBracketedPaste);
      stdin.off("keypress", onKeypress);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}

export type Keyboard = ReturnType<typeof openKeyboard>;

/** A key press as Node parses it. */
export interface KeyPress {
  name?: string | undefined;
  sequence?: string | undefined;
  ctrl?: boolean | undefined;
  meta?: boolean | undefined;
}

export function toKey(text: string | undefined, { name = "", ctrl, meta, sequence }: KeyPress): Key | null {
  const keyName = (ctrl ? ctrlKeys : meta ? metaKeys : plainKeys)[name];
  if (keyName) return { name: keyName };
  if (ctrl || meta || text === undefined) return null;
  // An unknown control sequence is not text.
  // oxlint-disable-next-line no-control-regex
  return /^[\u0000-\u001f\u007f]/.test(sequence ?? text) ? null : { name: "text", text };
}

const plainKeys: Record<string, KeyName> = {
  return: "enter",
  // Ctrl-J, and Shift-Enter in terminals that distinguish it from Enter.
  enter: "newline",
  backspace: "backspace",
  delete: "delete",
  left: "left",
  right: "right",
  up: "up",
  down: "down",
  home: "home",
  end: "end",
  escape: "escape",
};
const ctrlKeys: Record<string, KeyName> = {
  a: "home",
  b: "left",
  c: "interrupt",
  d: "end-of-input",
  e: "end",
  f: "right",
  h: "backspace",
  k: "delete-after",
  l: "redraw",
  left: "word-left",
  n: "down",
  p: "up",
  right: "word-right",
  u: "delete-before",
  w: "delete-word",
};
const metaKeys: Record<string, KeyName> = {
  b: "word-left",
  backspace: "delete-word",
  escape: "escape",
  f: "word-right",
  left: "word-left",
  return: "newline",
  right: "word-right",
};
