/**
 * A script that was compiled ahead has no import(), and the build turns it into require(), which loads no ES module on
 * Node 20. bin/load-compiled.js therefore hands its own import() to the bundles, beside `require`.
 */
declare const importFromBundle: ((url: string) => Promise<unknown>) | undefined;

/** import() of a module whose address is known only when Drover runs. */
export const importModule = (url: string): Promise<unknown> =>
  typeof importFromBundle === "function" ? importFromBundle(url) : import(url);
