import { expect, it } from "vitest";
import { findDroverCommand, withDroverCommand } from "./drover-command.ts";

it("returns `npx drover` if npx started Drover, in any directory", () => {
  expect(findDroverCommand("/home/ada/.npm/_npx/11e7/node_modules/.bin/drover", "/home/ada/drover")).toBe("npx drover");
  expect(findDroverCommand("/home/ada/site/node_modules/.bin/drover", "/home/ada/site/docs")).toBe("npx drover");
});

it("returns `npx drover` if Drover was started from bin/ and the current directory is in the checkout", () => {
  expect(findDroverCommand("/home/ada/drover/bin/drover.js", "/home/ada/drover")).toBe("npx drover");
  expect(findDroverCommand("/home/ada/drover/bin/drover.js", "/home/ada/drover/examples/agents")).toBe("npx drover");
});

it("returns `drover` elsewhere, where npx would find another package or none", () => {
  expect(findDroverCommand("/home/ada/drover/bin/drover.js", "/home/ada/site")).toBe("drover");
  expect(findDroverCommand("/home/ada/drover/bin/drover.js", "/home/ada/drover-site")).toBe("drover");
  expect(findDroverCommand("/usr/local/bin/drover", "/home/ada/drover")).toBe("drover");
});

it("replaces `drover` in commands, but not in a command that already starts with npx", () => {
  expect(withDroverCommand("Run `drover exec -- true`, or drover runs list.", "npx drover")).toBe(
    "Run `npx drover exec -- true`, or npx drover runs list.",
  );
  expect(withDroverCommand("Run: npx drover exec -- true", "npx drover")).toBe("Run: npx drover exec -- true");
});
