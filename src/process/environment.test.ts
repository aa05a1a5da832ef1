import { expect, test } from "vitest";
import { buildEnvironment, canRunCode } from "./environment.ts";

const parent = {
  PATH: "/bin",
  HOME: "/h",
  LC_ALL: "C",
  EDITOR: "vi",
  GITHUB_TOKEN: "t",
  NODE_OPTIONS: "--x",
  LD_PRELOAD: "/x.so",
  GONE: undefined,
};

test("merge passes the base variables and those of the command", () => {
  const built = buildEnvironment({
    options: { mode: "merge" },
    parent,
    variables: { MINE: "1" },
    ids: { DROVER_RUN_ID: "r" },
  });
  expect(built).toEqual({
    environment: { PATH: "/bin", HOME: "/h", LC_ALL: "C", MINE: "1", DROVER_RUN_ID: "r" },
    withheld: [],
  });
});

test("inherit passes all variables except loader hooks and secrets, and reports those", () => {
  const built = buildEnvironment({ options: { mode: "inherit" }, parent });
  expect(built.environment).toEqual({ PATH: "/bin", HOME: "/h", LC_ALL: "C", EDITOR: "vi" });
  expect(built.withheld).toEqual(["GITHUB_TOKEN", "NODE_OPTIONS", "LD_PRELOAD"]);
});

test("replace passes only the variables of the command and the ids", () => {
  expect(
    buildEnvironment({ options: { mode: "replace" }, parent, variables: { A: "1" }, ids: { DROVER_RUN_ID: "r" } }),
  ).toEqual({ environment: { A: "1", DROVER_RUN_ID: "r" }, withheld: [] });
});

test("uses merge by default", () => {
  expect(buildEnvironment({ parent }).environment).toEqual({ PATH: "/bin", HOME: "/h", LC_ALL: "C" });
});

test("allow passes withheld variables by name or prefix, and deny overrides it", () => {
  const options = { mode: "inherit", allow: ["GITHUB_*", "NODE_OPTIONS"], deny: ["NODE_OPTIONS", "EDIT*"] } as const;
  const built = buildEnvironment({ options, parent });
  expect(built.environment).toEqual({ PATH: "/bin", HOME: "/h", LC_ALL: "C", GITHUB_TOKEN: "t" });
  expect(built.withheld).toEqual(["EDITOR", "NODE_OPTIONS", "LD_PRELOAD"]);
  expect(buildEnvironment({ options: { mode: "merge", allow: ["EDITOR"], deny: ["HOME"] }, parent })).toEqual({
    environment: { PATH: "/bin", LC_ALL: "C", EDITOR: "vi" },
    withheld: ["HOME"],
  });
});

test("passes variables of the command whatever their name, and does not report them as withheld", () => {
  const built = buildEnvironment({
    options: { mode: "inherit", deny: ["*"] },
    parent: { GITHUB_TOKEN: "t" },
    variables: { GITHUB_TOKEN: "mine", LD_PRELOAD: "/mine.so" },
  });
  expect(built).toEqual({ environment: { GITHUB_TOKEN: "mine", LD_PRELOAD: "/mine.so" }, withheld: [] });
});

test("ids override variables of the command", () => {
  expect(
    buildEnvironment({ parent: {}, variables: { DROVER_RUN_ID: "forged" }, ids: { DROVER_RUN_ID: "true" } })
      .environment,
  ).toEqual({ DROVER_RUN_ID: "true" });
});

test("treats __proto__ like any other variable", () => {
  const odd = JSON.parse('{"__proto__": "x"}');
  const { environment } = buildEnvironment({ options: { mode: "inherit" }, parent: odd });
  expect(Object.entries(environment)).toEqual([["__proto__", "x"]]);
});

test.each([
  "LD_PRELOAD",
  "LD_LIBRARY_PATH",
  "DYLD_INSERT_LIBRARIES",
  "NODE_OPTIONS",
  "PYTHONSTARTUP",
  "PERL5OPT",
  "RUBYOPT",
  "BASH_ENV",
  "ENV",
  "BASH_FUNC_ls%%",
  "GIT_SSH_COMMAND",
  "GIT_CONFIG_COUNT",
  "JAVA_TOOL_OPTIONS",
])("recognizes %s as a variable that can run code in the child", (name) => expect(canRunCode(name)).toBe(true));
test.each(["PATH", "HOME", "NODE_ENV", "GIT_AUTHOR_NAME", "PYTHONUNBUFFERED", "OLD_PATH"])(
  "recognizes %s as a variable that cannot run code in the child",
  (name) => expect(canRunCode(name)).toBe(false),
);
