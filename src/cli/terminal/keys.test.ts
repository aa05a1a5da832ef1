import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { type Key, openKeyboard } from "./keys.ts";

/** Returns the keys that Node parses from terminal input. */
function readKeys(input: string): Promise<Key[]> {
  const keys: Key[] = [];
  const stdin = Object.assign(new PassThrough(), { setRawMode: () => undefined });
  // The keyboard uses only these members of a terminal.
  const keyboard = openKeyboard(
    stdin as unknown as NodeJS.ReadStream,
    () => undefined,
    (key) => keys.push(key),
  );
  stdin.write(input);
  return new Promise((resolve) =>
    setImmediate(() => {
      keyboard.close();
      resolve(keys);
    }),
  );
}

describe("the keyboard", () => {
  it("recognizes editing keys", async () => {
    const names = (await readKeys("\r\u007f\u001b[D\u001b[1;5C\u001bb\u0001\u0017\u0003\u0004\u001b\r\n")).map(
      ({ name }) => name,
    );
    expect(names).toEqual([
      "enter",
      "backspace",
      "left",
      "word-right",
      "word-left",
      "home",
      "delete-word",
      "interrupt",
      "end-of-input",
      "newline",
      "newline",
    ]);
  });

  it("passes pasted text on as one key", async () => {
    expect(await readKeys("\u001b[200~one\r\ntwo\rthree\u001b[201~")).toEqual([
      { name: "text", text: "one\ntwo\nthree" },
    ]);
  });

  it("ignores unknown sequences", async () => {
    expect(await readKeys("\u001b[5~\u001b[1;2P\u001b[99~")).toEqual([]);
  });

  it("passes on characters of any script", async () => {
    expect(await readKeys("é日")).toEqual([
      { name: "text", text: "é" },
      { name: "text", text: "日" },
    ]);
  });
});
