import { expect, test } from "vitest";
import { drover, folder } from "./drover.ts";

test("init creates a project that works immediately, and overwrites nothing", async () => {
  const cwd = folder();
  const here = (...args: string[]) => drover(args, { cwd });
  expect((await here("init", "my agents")).stdout).toMatch(/^Try:\n {2}cd 'my agents'\n {2}drover run greet/);
  expect((await here("init")).stdout).toMatch(/^Try:\n {2}drover run greet --name Ada /);
  expect(await here("agents", "check")).toMatchObject({ code: 0, stdout: "ok greet\nok writer\n" });
  expect(await here("run", "greet", "--name", "Ada")).toMatchObject({
    code: 0,
    stdout: '{"greeting":"Hello, Ada!"}\n',
  });
  const { code, stdout, stderr } = await here("run", "writer", "--prompt", "write a haiku");
  expect([code, stdout]).toEqual([0, "I wrote haiku.txt.\n"]);
  expect(stderr).toContain("1 file");
  expect(await here("run", "greet")).toMatchObject({ code: 2, stderr: expect.stringContaining("parameters_schema") });
  expect(await here("init")).toMatchObject({ code: 2, stderr: expect.stringContaining("DROVER-USE-012") });
});
