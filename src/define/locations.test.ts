import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordDirectory } from "../model/state-layout.ts";
import { findLocations } from "./locations.ts";
import { projectStateDirectory } from "./user-state.ts";

/** Avoids the usual temporary directory, because sandboxes of agents put a .git there, which the search would find. */
const searchRoot = existsSync("/var/tmp") ? "/var/tmp" : tmpdir();

let top: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(searchRoot, "drover-places-")));
  mkdirSync(join(top, "a", "b"), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true }));

const home = { HOME: "/home/someone" };

it("prefers DROVER_STATE_DIR over everything else", () => {
  mkdirSync(join(top, ".drover"));
  expect(findLocations({ ...home, DROVER_STATE_DIR: "/elsewhere" }, top).stateDirectory).toBe("/elsewhere");
});

it("resolves a relative DROVER_STATE_DIR against the working directory", () => {
  expect(findLocations({ ...home, DROVER_STATE_DIR: "state" }, join(top, "a")).stateDirectory).toBe(
    join(top, "a", "state"),
  );
});

it("uses a state directory in the user's own for the project of the nearest drover.yaml or repository", () => {
  mkdirSync(join(top, ".git"));
  const getProjectState = (directory: string) => projectStateDirectory("/home/someone/.local/state/drover", directory);
  expect(findLocations(home, join(top, "a", "b"))).toMatchObject({
    stateDirectory: getProjectState(top),
    configFile: null,
    repository: top,
  });
  writeFileSync(join(top, "a", "drover.yaml"), "");
  expect(findLocations(home, join(top, "a", "b"))).toMatchObject({
    stateDirectory: getProjectState(join(top, "a")),
    configFile: join(top, "a", "drover.yaml"),
    repository: top,
  });
  expect(getProjectState(join(top, "a"))).toMatch(
    /^\/home\/someone\/\.local\/state\/drover\/projects\/a-[0-9a-f]{12}$/,
  );
});

it("falls back to the user's own state directory", () => {
  expect(findLocations(home, top).stateDirectory).toBe("/home/someone/.local/state/drover/user");
});

it("treats two clones as two projects, and a link to a project as the same project", () => {
  for (const name of ["a", "b"]) mkdirSync(join(top, name, ".git"), { recursive: true });
  symlinkSync(join(top, "a"), join(top, "link"));
  const [a, b, link] = ["a", "b", "link"].map((name) => findLocations(home, join(top, name)).stateDirectory);
  expect(a).not.toBe(b);
  expect(link).toBe(a);
});

it("treats a worktree as a separate project", () => {
  mkdirSync(join(top, ".git"));
  writeFileSync(join(top, "a", ".git"), "gitdir: ../.git/worktrees/a\n");
  expect(findLocations(home, join(top, "a")).stateDirectory).not.toBe(findLocations(home, top).stateDirectory);
});

it.each(["we ird'$(x)", "..dots", "-rf", "Ünï", "a".repeat(200), "."])(
  "gives the project %j a plain directory name",
  (name) => {
    const directory = join(top, name);
    mkdirSync(join(directory, ".git"), { recursive: true });
    expect(findLocations(home, directory).stateDirectory.split("/").at(-1)).toMatch(
      /^[A-Za-z0-9_][\w.-]{0,39}-[0-9a-f]{12}$/,
    );
  },
);

describe("the user's state directory", () => {
  it.each([
    [{ XDG_STATE_HOME: "/state" }, "/state/drover"],
    [{ XDG_STATE_HOME: "relative" }, "/home/someone/.local/state/drover"],
    [{ XDG_STATE_HOME: "" }, "/home/someone/.local/state/drover"],
  ])("with %j is %s", (env, directory) => {
    expect(findLocations({ ...home, ...env }, top).stateDirectory).toBe(`${directory}/user`);
  });

  it.each([{}, { HOME: "" }, { HOME: "here" }])(
    "without a HOME (%j) is below the home directory in the user database, and never in /tmp",
    (env) => {
      expect(findLocations(env, top).stateDirectory).toBe(join(userInfo().homedir, ".local/state/drover/user"));
    },
  );
});

describe("a .drover/ in a directory", () => {
  /** Creates it the way a command with DROVER_STATE_DIR would. */
  const createState = (directory: string) => {
    const env = { HOME: join(top, "home"), DROVER_STATE_DIR: join(directory, ".drover") };
    mkdirSync(recordDirectory(env.DROVER_STATE_DIR), { recursive: true });
    const { headCopy } = findLocations(env, directory);
    mkdirSync(dirname(headCopy!), { recursive: true });
    writeFileSync(headCopy!, "");
  };
  const withoutTrust = () => ({ HOME: join(top, "home") });
  const withTrust = (directory: string) => ({ ...withoutTrust(), DROVER_TRUST: directory });
  const getUserState = () => join(top, "home/.local/state/drover/user");

  it("that came with a repository is ignored, even if the directory is trusted", () => {
    mkdirSync(recordDirectory(join(top, ".drover")), { recursive: true });
    for (const env of [withoutTrust(), withTrust(top)])
      expect(findLocations(env, join(top, "a"))).toMatchObject({
        stateDirectory: getUserState(),
        ignoredState: { path: join(top, ".drover"), createdByUser: false },
      });
  });

  const elsewhere = () => {
    createState(join(top, "a"));
    return join(top, "a", ".drover");
  };
  const planted: [how: string, plant: (path: string) => void][] = [
    ["beside a drover.yaml", (path) => (mkdirSync(path), writeFileSync(join(top, "drover.yaml"), ""))],
    [
      "in the directory of its repository",
      (path) => (mkdirSync(path), mkdirSync(join(top, ".git"), { recursive: true })),
    ],
    ["with a database of an earlier version", (path) => (mkdirSync(path), writeFileSync(join(path, "drover.db"), ""))],
    [
      "with a copy of the head in itself",
      (path) => {
        cpSync(elsewhere(), path, { recursive: true });
        cpSync(join(top, "home/.local/state/drover/heads"), join(path, "heads"), { recursive: true });
      },
    ],
    ["as a link to a directory of the repository", (path) => (mkdirSync(join(top, "x")), symlinkSync("x", path))],
    ["as a link to the state of another project", (path) => symlinkSync(elsewhere(), path)],
    [
      "with a link to the record of another project",
      (path) => (mkdirSync(path), symlinkSync(recordDirectory(elsewhere()), recordDirectory(path))),
    ],
    ["as the state of another project, moved", (path) => renameSync(elsewhere(), path)],
  ];
  it.each(planted)("that came %s is ignored, even if the directory is trusted", (_how, plant) => {
    const path = join(top, ".drover");
    plant(path);
    for (const env of [withoutTrust(), withTrust(top)]) {
      const { stateDirectory, ignoredState } = findLocations(env, top);
      expect(stateDirectory.startsWith(join(top, "home/.local/state/drover/"))).toBe(true);
      expect(ignoredState?.path).toBe(path);
    }
  });

  it("that Drover created for this user is used if the directory is trusted", () => {
    createState(top);
    expect(findLocations(withoutTrust(), top)).toMatchObject({
      stateDirectory: getUserState(),
      ignoredState: { path: join(top, ".drover"), createdByUser: true },
    });
    const { stateDirectory, ignoredState } = findLocations(withTrust(top), join(top, "a", "b"));
    expect([stateDirectory, ignoredState]).toEqual([join(top, ".drover"), undefined]);
  });

  it("is ignored in another directory it was copied to", () => {
    createState(join(top, "a"));
    cpSync(join(top, "a", ".drover"), join(top, ".drover"), { recursive: true });
    expect(findLocations(withTrust(top), top).stateDirectory).toBe(getUserState());
  });

  it("that is ignored does not hide a usable one further up", () => {
    createState(top);
    mkdirSync(join(top, "a", ".drover"));
    expect(findLocations(withTrust(top), join(top, "a"))).toMatchObject({
      stateDirectory: join(top, ".drover"),
      ignoredState: { path: join(top, "a", ".drover"), createdByUser: false },
    });
  });

  it("that is a file or a dangling link is ignored", () => {
    writeFileSync(join(top, ".drover"), "");
    symlinkSync(join(top, "nowhere"), join(top, "a", ".drover"));
    expect(findLocations(withoutTrust(), join(top, "a")).ignoredState).toBeUndefined();
  });
});

it.each([
  ["a directory", (path: string) => mkdirSync(path)],
  ["a link to nothing", (path: string) => symlinkSync("nowhere", path)],
  ["a link to itself", (path: string) => symlinkSync("drover.yaml", path)],
])("finds a drover.yaml that is %s, so that reading it reports the fault", (_what, make) => {
  make(join(top, "drover.yaml"));
  expect(findLocations(home, join(top, "a")).configFile).toBe(join(top, "drover.yaml"));
});

const asRoot = it.runIf(process.getuid?.() === 0);

asRoot("ignores as root a drover.yaml, or a link to one, that belongs to another user", () => {
  writeFileSync(join(top, "drover.yaml"), "");
  chownSync(join(top, "drover.yaml"), 1234, 1234);
  symlinkSync(join(top, "drover.yaml"), join(top, "a", "drover.yaml"));
  expect(findLocations(home, join(top, "a")).configFile).toBeNull();
  chownSync(join(top, "drover.yaml"), 0, 0);
  lchownSync(join(top, "a", "drover.yaml"), 1234, 1234);
  expect(findLocations(home, join(top, "a")).configFile).toBe(join(top, "drover.yaml"));
});

asRoot("ignores a drover.yaml and a .drover/ of another user", () => {
  mkdirSync(join(top, ".drover"));
  writeFileSync(join(top, "drover.yaml"), "");
  chownSync(join(top, ".drover"), 1234, 1234);
  chownSync(join(top, "drover.yaml"), 1234, 1234);
  chmodSync(top, 0o755);
  const none = { stateDirectory: "/home/someone/.local/state/drover/user", configFile: null };
  for (const seen of [findLocations(home, top), asNobody(() => findLocations(home, top))]) {
    expect(seen).toMatchObject(none);
    expect(seen.ignoredState).toBeUndefined();
  }
  chmodSync(top, 0o700);
  // A directory without search permission does not stop the search either.
  expect(asNobody(() => findLocations(home, join(top, "a")))).toMatchObject(none);
});

/** Changes only the effective user, so that the test process can switch back. */
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
