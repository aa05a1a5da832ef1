/**
 * A precompiled script has no import(). The build replaces it with require(), which cannot load ES modules on Node 20.
 * bin/load-compiled.js therefore passes its own import() to the bundles, next to `require`.
 */
declare const importFromBundle: ((url: string) => Promise<unknown>) | undefined;

/** Imports a module whose address is known only at run time. */
export const importModule = (url: string): Promise<unknown> =>
  typeof importFromBundle === "function" ? importFromBundle(url) : import(url);
