#!/bin/sh
":" //; exec node -- "$0" "$@"
// Without the `--` Node takes the --env-file of `drover runner` for its own. Line 2 is a string to Node and a command to
// sh; `env -S` would do, but BusyBox does not have it.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`drover: Node ${process.versions.node} is too old; Drover needs 20.19 or newer.\n`);
  process.exit(125);
}
const argv = process.argv.slice(2);
// exec is its own small bundle: it starts in a fraction of the time
const { main } = require("./load-compiled.js")(argv[0] === "exec" ? "cli-exec" : "cli-main");
main(argv);
