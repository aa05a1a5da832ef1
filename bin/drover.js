#!/usr/bin/env node
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`drover: Node ${process.versions.node} is too old; Drover needs 20.19 or newer.\n`);
  process.exit(125);
}
const argv = process.argv.slice(2);
// exec is its own small bundle, compiled ahead: it starts in a fraction of the time
const { main } = argv[0] === "exec" ? require("./load-compiled.js")("cli-exec") : require("../dist/cli-main.cjs");
main(argv);
