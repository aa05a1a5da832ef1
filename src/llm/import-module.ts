/**
 * A precompiled script has no import(), and the build replaces it with require(), which loads no ES module on Node 20.
 * bin/load-compiled.js therefore passes its own import() to the bundles, beside `require`.
 */
declare const importFromBundle: ((url: string) => Promise<unknown>) | undefined;

/** Imports a module whose address is known only at run time. */
export const importModule = (url: string): Promise<unknown> =>
  typeof importFromBundle === "function" ? importFromBundle(url) : import(url);
