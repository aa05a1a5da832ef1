import { expect, test } from "vitest";
import { drover, createDirectory } from "./drover.ts";

test("init creates a project that works immediately, and overwrites nothing", async () => {
  const cwd = createDirectory();
  const run = (...args: string[]) => drover(args, { cwd });
  expect((await run("init", "my agents")).stdout).toMatch(
    /^Try:\n {2}cd 'my agents'\n {2}# run a command with typed parameters\n {2}drover run greet/,
  );
  expect((await run("init")).stdout).toMatch(
    /^Try:\n {2}# run a command with typed parameters\n {2}drover run greet --name Ada$/m,
  );
  expect(await run("agents", "check")).toMatchObject({ code: 0, stdout: "ok greet\nok writer\n" });
  expect(await run("run", "greet", "--name", "Ada")).toMatchObject({
    code: 0,
    stdout: '{"greeting":"Hello, Ada!"}\n',
  });
  const { code, stdout, stderr } = await run("run", "writer", "--prompt", "write a haiku");
  expect([code, stdout]).toEqual([0, "I wrote haiku.txt.\n"]);
  expect(stderr).toContain("1 file");
  expect(await run("run", "greet")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("drover run greet --help"),
  });
  expect(await run("init")).toMatchObject({ code: 2, stderr: expect.stringContaining("DROVER-USE-012") });
});
