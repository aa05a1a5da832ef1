/** A queue that serves callers round-robin, and each caller's items in order. */
export interface FairQueue<T> {
  readonly size: number;
  count(caller: string): number;
  push(caller: string, item: T): void;
  shift(): T | undefined;
  /** Returns false if the item is not in the queue. */
  remove(caller: string, item: T): boolean;
  /** Removes and returns all items of one caller. */
  removeAll(caller: string): T[];
}

export function createFairQueue<T>(): FairQueue<T> {
  /** The first caller is served next. */
  const lists = new Map<string, T[]>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    count: (caller) => lists.get(caller)?.length ?? 0,
    push(caller, item) {
      size += 1;
      const list = lists.get(caller);
      if (list) list.push(item);
      else lists.set(caller, [item]);
    },
    shift() {
      for (const [caller, list] of lists) {
        size -= 1;
        const item = list.shift();
        lists.delete(caller);
        if (list.length > 0) lists.set(caller, list);
        return item;
      }
      return undefined;
    },
    remove(caller, item) {
      const list = lists.get(caller) ?? [];
      const index = list.indexOf(item);
      if (index < 0) return false;
      size -= 1;
      list.splice(index, 1);
      if (list.length === 0) lists.delete(caller);
      return true;
    },
    removeAll(caller) {
      const list = lists.get(caller) ?? [];
      size -= list.length;
      lists.delete(caller);
      return list;
    },
  };
}
