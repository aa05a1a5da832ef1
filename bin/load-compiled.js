"use strict";
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");
const { Script } = require("node:vm");

const dist = join(__dirname, "..", "dist");

/**
 * Loads a bundle with the code that the build compiled ahead of time. V8 itself refuses a cache of another
 * version of Node or of the source; then, and where there is none, it is compiled as usual.
 */
module.exports = function loadCompiled(name) {
  const file = join(dist, `${name}.cjs`);
  const script = compile(file, readFileSync(file, "utf8"), readCache(name));
  const loaded = { exports: {} };
  script.runInThisContext()(loaded.exports, createRequire(file), loaded, file, dist);
  return loaded.exports;
};

module.exports.compile = compile;

function compile(file, source, cachedData) {
  return new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
    filename: file,
    cachedData,
  });
}

function readCache(name) {
  try {
    return readFileSync(join(dist, `${name}.cache`));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
