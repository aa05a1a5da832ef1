"use strict";
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");
const { Script } = require("node:vm");

const dist = join(__dirname, "..", "dist");
const requireExternal = createRequire(join(dist, "chunk.cjs"));
const loaded = new Map();

/**
 * Loads a bundle and the bundles it requires, using the code cache that the build created. V8 rejects a cache from
 * another Node version or another source. Then, or without a cache, the bundle is compiled as usual.
 */
module.exports = function loadCompiled(name) {
  const cached = loaded.get(name);
  if (cached !== undefined) return cached.module.exports;
  const file = join(dist, `${name}.cjs`);
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname, importFromBundle) {${readFileSync(file, "latin1")}\n})`,
    // The cache contains this name, and stack traces show it, so it must not depend on where the package is installed.
    { filename: `drover/dist/${name}.cjs`, cachedData: readCache(name) },
  );
  const module = { exports: {} };
  loaded.set(name, { module, script });
  script.runInThisContext()(module.exports, requireFromDist, module, file, dist, (url) => import(url));
  return module.exports;
};

/** The bundles loaded so far, by name. */
module.exports.loaded = loaded;

function requireFromDist(id) {
  return id.startsWith("./") ? module.exports(id.slice(2, -".cjs".length)) : requireExternal(id);
}

function readCache(name) {
  try {
    return readFileSync(join(dist, `${name}.cache`));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
