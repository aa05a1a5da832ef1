import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
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

/** Agents' sandboxes put a .git into the usual folder for temporary files while they run, and it would be found. */
const quiet = existsSync("/var/tmp") ? "/var/tmp" : tmpdir();

let top: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(quiet, "drover-places-")));
  mkdirSync(join(top, "a", "b"), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true }));

const home = { HOME: "/home/someone" };

it("DROVER_STATE_DIR wins over everything", () => {
  mkdirSync(join(top, ".drover"));
  expect(findPlaces({ ...home, DROVER_STATE_DIR: "/elsewhere" }, top).stateDirectory).toBe("/elsewhere");
});

it("a relative DROVER_STATE_DIR is seen from the directory the command is given in", () => {
  expect(findPlaces({ ...home, DROVER_STATE_DIR: "state" }, join(top, "a")).stateDirectory).toBe(
    join(top, "a", "state"),
  );
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

it.each([
  ["a directory", (path: string) => mkdirSync(path)],
  ["a link to nothing", (path: string) => symlinkSync("nowhere", path)],
  ["a link to itself", (path: string) => symlinkSync("drover.yaml", path)],
])("a drover.yaml that is %s is found, so that its reader can refuse it", (_what, make) => {
  make(join(top, "drover.yaml"));
  expect(findPlaces(home, join(top, "a")).configFile).toBe(join(top, "drover.yaml"));
});

const asRoot = it.runIf(process.getuid?.() === 0);

asRoot("root takes only what is root's, link and target", () => {
  mkdirSync(join(top, ".git"));
  for (const name of [".drover", "drover.yaml"]) {
    if (name === ".drover") mkdirSync(join(top, name));
    else writeFileSync(join(top, name), "");
    chownSync(join(top, name), 1234, 1234);
    symlinkSync(join(top, name), join(top, "a", name));
  }
  const none = { stateDirectory: "/home/someone/.local/state/drover", configFile: null };
  expect(findPlaces(home, join(top, "a"))).toMatchObject(none);
  for (const name of [".drover", "drover.yaml"]) {
    chownSync(join(top, name), 0, 0);
    lchownSync(join(top, "a", name), 1234, 1234);
  }
  expect(findPlaces(home, join(top, "a"))).toMatchObject({
    stateDirectory: join(top, ".drover"),
    configFile: join(top, "drover.yaml"),
  });
});

asRoot("as an ordinary user, what belongs to someone else is passed over", () => {
  mkdirSync(join(top, ".drover"));
  writeFileSync(join(top, "drover.yaml"), "");
  chownSync(join(top, ".drover"), 1234, 1234);
  chownSync(join(top, "drover.yaml"), 1234, 1234);
  chmodSync(top, 0o755);
  const none = { stateDirectory: "/home/someone/.local/state/drover", configFile: null };
  expect(asNobody(() => findPlaces(home, top))).toMatchObject(none);
  chmodSync(top, 0o700);
  // nor does a folder that may not even be searched stop us
  expect(asNobody(() => findPlaces(home, join(top, "a")))).toMatchObject(none);
});

/** The effective user alone: a test process must be able to come back. */
function asNobody<T>(work: () => T): T {
  const getuid = process.getuid;
  process.seteuid?.(65534);
  process.getuid = () => 65534;
  try {
    return work();
  } finally {
    if (getuid) process.getuid = getuid;
    process.seteuid?.(0);
  }
}
