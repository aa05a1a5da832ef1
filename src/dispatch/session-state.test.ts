import { expect, it } from "vitest";
import { createAgent } from "../../test/fixtures/dispatch/drive.ts";
import { eachEngine } from "../../test/fixtures/record/each-engine.ts";
import type { SaveSessionRequest } from "../model/runner-port.ts";
import type { Op, Store } from "../model/store.ts";
import { saveSession } from "./session-state.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
type File = SaveSessionRequest["files"][number];
const createFiles = (count: number, bytes = ""): File[] =>
  Array.from({ length: count }, (_, index) => ({ path: `d/${String(index).padStart(6, "0")}`, type: "file", bytes }));

eachEngine("a save of a session", (record) => {
  async function start() {
    const { store, driver } = record;
    const runner = await driver.register("r");
    const run_id = await driver.submit({ session_id: "s" }, chat);
    await driver.claim(runner);
    const saves: Extract<Op, { op: "save_session" }>[] = [];
    const steps: string[] = [];
    const apply: Store["apply"] = (ops) => {
      for (const op of ops) if (op.op === "save_session") saves.push(op);
      steps.push("transaction");
      return store.apply(ops);
    };
    const waitForTurn = async (): Promise<void> => void steps.push("turn");
    const save = (changes: Partial<SaveSessionRequest>) =>
      saveSession(
        {
          ...runner,
          run_id,
          attempt: 1,
          n: 1,
          events: [{ n: 1, at: record.now().toISOString(), event: { type: "output", stream: "stdout", text: "one" } }],
          format: "test",
          bytes: Buffer.from("state").toString("base64"),
          portable: true,
          files: [],
          ...changes,
        },
        undefined,
        { apply, waitForTurn },
      );
    const readFiles = async (): Promise<string[]> =>
      (await record.rows("select path from session_files order by path")).map(({ path }) => String(path));
    const readState = async () => store.read.session_state({ run_id, attempt: 1, runner });
    return { save, saves, steps, readFiles, readState };
  }

  it("stores many files in several transactions, with a turn for other callers before each", async () => {
    const { save, saves, steps, readFiles, readState } = await start();
    await save({ files: [{ path: "old", type: "file", bytes: "" }] });
    saves.length = steps.length = 0;
    const files = createFiles(2500);
    expect(await save({ files, all_files: true })).toEqual({ save: "saved" });
    expect(saves.map((op) => op.files.length)).toEqual([1000, 1000, 500]);
    expect(steps).toEqual(["transaction", "turn", "transaction", "turn", "transaction"]);
    // Another runner can continue the session only with all of its files.
    expect(saves.map(({ portable }) => portable)).toEqual([false, false, true]);
    expect(await readFiles()).toEqual(files.map(({ path }) => path));
    expect(await readState()).toMatchObject({ state: { portable: true, bytes: { length: 5 } } });
  });

  it("stores many bytes in several transactions", async () => {
    const { save, saves, readFiles } = await start();
    const files = createFiles(5, Buffer.alloc(900_000).toString("base64"));
    expect(await save({ files })).toEqual({ save: "saved" });
    expect(saves.map((op) => op.files.length)).toEqual([2, 2, 1]);
    expect(await readFiles()).toHaveLength(5);
  });

  it("stores none of the files of a late save", async () => {
    const { save, readFiles } = await start();
    const events = [1, 2].map((n) => ({
      n,
      at: record.now().toISOString(),
      event: { type: "output" as const, stream: "stdout" as const, text: "x" },
    }));
    await save({ n: 2, events, files: [{ path: "new", type: "file", bytes: "" }] });
    expect(await save({ n: 1, events: [], files: createFiles(2500) })).toEqual({ save: "saved" });
    expect(await readFiles()).toEqual(["new"]);
  });

  it("refuses more files than a session may have, even if they are empty", async () => {
    const { save, readFiles } = await start();
    expect(await save({ files: createFiles(42_000) })).toEqual({ save: "saved" });
    expect(await save({ files: [{ path: "more", type: "file", bytes: "" }] })).toEqual({ save: "too_large" });
    expect(await save({ files: [{ path: "d/000000", type: null }] })).toEqual({ save: "saved" });
    expect(await save({ files: [{ path: "more", type: "file", bytes: "" }] })).toEqual({ save: "saved" });
    expect(await readFiles()).toHaveLength(42_000);
  });
});
