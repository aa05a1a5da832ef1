import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findPlaces } from "./places.ts";

let top: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "drover-places-")));
  mkdirSync(join(top, "a", "b"), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true }));

const home = { HOME: "/home/someone" };

it("DROVER_STATE_DIR wins over everything", () => {
  mkdirSync(join(top, ".drover"));
  expect(findPlaces({ ...home, DROVER_STATE_DIR: "/elsewhere" }, top).stateDirectory).toBe("/elsewhere");
});

it("else the nearest .drover upward", () => {
  mkdirSync(join(top, ".drover"));
  mkdirSync(join(top, "a", ".drover"));
  expect(findPlaces(home, join(top, "a", "b")).stateDirectory).toBe(join(top, "a", ".drover"));
});

it("else beside the nearest drover.yaml, else at the root of the repository", () => {
  mkdirSync(join(top, ".git"));
  expect(findPlaces(home, join(top, "a", "b"))).toEqual({
    stateDirectory: join(top, ".drover"),
    configFile: null,
    repository: top,
  });
  writeFileSync(join(top, "a", "drover.yaml"), "");
  expect(findPlaces(home, join(top, "a", "b"))).toEqual({
    stateDirectory: join(top, "a", ".drover"),
    configFile: join(top, "a", "drover.yaml"),
    repository: top,
  });
});

it("else the user's state folder", () => {
  expect(findPlaces(home, top).stateDirectory).toBe("/home/someone/.local/state/drover");
  expect(findPlaces({ ...home, XDG_STATE_HOME: "/state" }, top).stateDirectory).toBe("/state/drover");
});

it("a .drover that is a file, or a link to nothing, is passed over", () => {
  writeFileSync(join(top, ".drover"), "");
  symlinkSync(join(top, "nowhere"), join(top, "a", ".drover"));
  expect(findPlaces(home, join(top, "a")).stateDirectory).toBe("/home/someone/.local/state/drover");
});

it.runIf(process.getuid?.() === 0)("as an ordinary user, what belongs to someone else is passed over", () => {
  mkdirSync(join(top, ".drover"));
  writeFileSync(join(top, "drover.yaml"), "");
  chownSync(join(top, ".drover"), 1234, 1234);
  chownSync(join(top, "drover.yaml"), 1234, 1234);
  chmodSync(top, 0o755);
  process.seteuid?.(65534);
  const getuid = process.getuid;
  process.getuid = () => 65534;
  try {
    const none = { stateDirectory: "/home/someone/.local/state/drover", configFile: null };
    expect(findPlaces(home, top)).toMatchObject(none);
    process.seteuid?.(0);
    chmodSync(top, 0o700);
    process.seteuid?.(65534);
    // nor does a folder that may not even be searched stop us
    expect(findPlaces(home, join(top, "a"))).toMatchObject(none);
  } finally {
    if (getuid) process.getuid = getuid;
    process.seteuid?.(0);
  }
});
