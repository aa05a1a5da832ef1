import { afterEach, beforeEach } from "vitest";
import type { Store } from "../../src/model/store.ts";
import { drive } from "../fixtures/dispatch/drive.ts";

export interface OpenedForDispatch {
  store: Store;
  /** Of the store's own clock, which stands still otherwise. */
  advance(ms: number): void;
  now(): Date;
  dispose(): Promise<void>;
}

export type EachWithStore = ReturnType<typeof eachWithStore>;

/** A new store for each test of the group it is called in, with what drives it. */
export function eachWithStore(open: () => Promise<OpenedForDispatch>) {
  let current: OpenedForDispatch;
  beforeEach(async () => {
    current = await open();
  });
  afterEach(() => current.dispose());
  const now = (): Date => current.now();
  const store: Store = {
    apply: (ops) => current.store.apply(ops),
    get read() {
      return current.store.read;
    },
    get blobs() {
      return current.store.blobs;
    },
    changes: (listener) => current.store.changes(listener),
    close: () => current.store.close(),
  };
  return { store, d: drive(store, now), now, advance: (ms: number) => current.advance(ms) };
}
