import { expect, it } from "vitest";
import { parseOptions, readSeconds } from "./options.ts";

const spec = {
  name: "exec",
  options: {
    timeout: { placeholder: "S", description: "" },
    env: { placeholder: "K=V", repeat: true, description: "" },
    shell: { description: "" },
  },
};

it("accepts options before and after positionals, with a space or an equals sign", () => {
  expect(parseOptions(["--timeout=5", "npm test", "--env", "A=1", "--shell", "--env=B=2"], spec)).toEqual({
    options: { timeout: "5", env: ["A=1", "B=2"], shell: true },
    positionals: ["npm test"],
    extraOptions: [],
    rest: null,
  });
});

it("does not treat arguments after -- as options", () => {
  expect(parseOptions(["--shell", "--", "ls", "--timeout", "--"], spec)).toEqual({
    options: { shell: true },
    positionals: [],
    extraOptions: [],
    rest: ["ls", "--timeout", "--"],
  });
});

it.each([
  [["--timout", "5"], "DROVER-USE-007", "--timeout"],
  [["-x"], "DROVER-USE-007", "-x"],
  [["--timeout"], "DROVER-USE-001", "needs a value"],
  [["--timeout", "1", "--timeout", "2"], "DROVER-USE-001", "twice"],
  [["--shell=yes"], "DROVER-USE-001", "no value"],
  [["--constructor"], "DROVER-USE-007", "--constructor"],
])("refuses %j", (argv, code, message) => {
  expect(() => parseOptions(argv, spec)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  );
});

it("passes unknown options to a command that accepts them", () => {
  const specWithExtraOptions = { ...spec, takesExtraOptions: true as const };
  expect(
    parseOptions(["echo", "--message", "a b", "--flag", "--n=-3", "--timeout", "5", "--last"], specWithExtraOptions),
  ).toEqual({
    options: { timeout: "5" },
    positionals: ["echo"],
    extraOptions: [
      ["message", "a b"],
      ["flag", true],
      ["n", "-3"],
      ["last", true],
    ],
    rest: null,
  });
});

it("accepts only a positive number of seconds", () => {
  expect(readSeconds({}, "timeout")).toBe(undefined);
  expect(readSeconds({ timeout: "0.5" }, "timeout")).toBe(0.5);
  for (const timeout of ["", "0", "-1", "soon", "Infinity"])
    expect(() => readSeconds({ timeout }, "timeout")).toThrow(expect.objectContaining({ code: "DROVER-USE-005" }));
});
