/** Pages of logs that were read and encoded a moment ago, for others who are at the same place. */
export interface PageCache<Page> {
  /** Reads the page unless it is cached. Callers that ask meanwhile share the same read. */
  get(key: string, read: () => Promise<Page>): Promise<Page>;
  /** Nobody is there any more to share the pages of these keys. */
  forget(beginning: string): void;
}

interface Options<Page> {
  maxBytes: number;
  bytesOf(page: Page): number;
  /** Whether it will be the same when it is read again. */
  keeps(page: Page): boolean;
}

export function createPageCache<Page>({ maxBytes, bytesOf, keeps }: Options<Page>): PageCache<Page> {
  const kept = new Map<string, Page>();
  const reading = new Map<string, Promise<Page>>();
  let bytes = 0;

  return {
    async get(key, read) {
      const known = kept.get(key) ?? (await reading.get(key)?.catch(() => undefined));
      // one that will change was read for somebody who asked before
      if (known !== undefined && keeps(known)) return known;
      const asked = read();
      reading.set(key, asked);
      try {
        const page = await asked;
        if (keeps(page)) keep(key, page);
        return page;
      } finally {
        if (reading.get(key) === asked) reading.delete(key);
      }
    },
    forget(beginning) {
      for (const key of kept.keys()) if (key.startsWith(beginning)) drop(key);
    },
  };

  function keep(key: string, page: Page): void {
    drop(key);
    kept.set(key, page);
    bytes += bytesOf(page);
    // the one that was read first
    for (const oldest of kept.keys()) {
      if (bytes <= maxBytes) return;
      drop(oldest);
    }
  }

  function drop(key: string): void {
    const page = kept.get(key);
    if (page !== undefined) bytes -= bytesOf(page);
    kept.delete(key);
  }
}
