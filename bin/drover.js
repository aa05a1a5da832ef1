#!/bin/sh
":" //; exec node -- "$0" "$@"
// Without the `--`, Node would read the --env-file of `drover runner` as its own option. Line 2 is a string for Node and a
// command for sh. `env -S` would work too, but BusyBox does not have it.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`drover: Node ${process.versions.node} is too old; Drover needs 20.19 or newer.\n`);
  process.exit(125);
}
const argv = process.argv.slice(2);
// The command exec has its own small bundle, which starts much faster.
const { main } = require("./load-compiled.js")(argv[0] === "exec" ? "cli-exec" : "cli-main");
main(argv);
