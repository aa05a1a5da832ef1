import { afterEach, beforeEach } from "vitest";
import type { Store } from "../../src/model/store.ts";
import { drive } from "../fixtures/dispatch/drive.ts";

export interface OpenedForDispatch {
  store: Store;
  /** Advances the store's clock, which stands still otherwise. */
  advance(ms: number): void;
  now(): Date;
  dispose(): Promise<void>;
}

export type EachWithStore = ReturnType<typeof eachWithStore>;

/** Opens a new store for each test of the surrounding group, with a driver for it. */
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
  return { store, driver: drive(store, now), now, advance: (ms: number) => current.advance(ms) };
}
