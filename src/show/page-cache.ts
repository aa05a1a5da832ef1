/** Caches recently read and encoded pages of logs for other followers at the same position. */
export interface PageCache<Page> {
  /** Reads the page unless it is cached. Concurrent callers share the same read. */
  get(key: string, read: () => Promise<Page>): Promise<Page>;
  /** Drops all pages whose key starts with this prefix. */
  evict(prefix: string): void;
}

interface Options<Page> {
  maxBytes: number;
  measure(page: Page): number;
  /** Whether reading the page again would give the same result. */
  isCacheable(page: Page): boolean;
}

export function createPageCache<Page>({ maxBytes, measure, isCacheable }: Options<Page>): PageCache<Page> {
  const cachedPages = new Map<string, Page>();
  const pendingReads = new Map<string, Promise<Page>>();
  let bytes = 0;

  return {
    async get(key, read) {
      const cachedPage = cachedPages.get(key) ?? (await pendingReads.get(key)?.catch(() => undefined));
      // A page that may still change was read for an earlier caller, so it may be outdated.
      if (cachedPage !== undefined && isCacheable(cachedPage)) return cachedPage;
      const newRead = read();
      pendingReads.set(key, newRead);
      try {
        const page = await newRead;
        if (isCacheable(page)) add(key, page);
        return page;
      } finally {
        if (pendingReads.get(key) === newRead) pendingReads.delete(key);
      }
    },
    evict(prefix) {
      for (const key of cachedPages.keys()) if (key.startsWith(prefix)) drop(key);
    },
  };

  function add(key: string, page: Page): void {
    drop(key);
    cachedPages.set(key, page);
    bytes += measure(page);
    for (const oldest of cachedPages.keys()) {
      if (bytes <= maxBytes) return;
      drop(oldest);
    }
  }

  function drop(key: string): void {
    const page = cachedPages.get(key);
    if (page !== undefined) bytes -= measure(page);
    cachedPages.delete(key);
  }
}
