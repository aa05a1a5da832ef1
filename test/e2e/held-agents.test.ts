import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { drover, folder, type Ran } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** A project with an agent that writes whatever it is asked to, served by `drover up`. */
async function served(...words: string[]) {
  const cwd = folder();
  const env = { DROVER_STATE_DIR: join(folder(), "state") };
  for (const name of ["profiles", "offers", "agents"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "mine.json"), JSON.stringify({ type: "procedural", agents_dir: "./offers" }));
  const write = `node -e 'fs.writeFileSync(process.argv[2], process.argv[4])' --`;
  writeFileSync(join(cwd, "offers", "write.json"), JSON.stringify({ name: "write", command: write }));
  const run = (...args: string[]): Promise<Ran> => drover(args, { cwd, env });
  const up = () => startDrover(["up", "--port", "0", ...words], { cwd, env, ready: /Drover is up at/ });
  const process = await up();
  const evil = async (file: string, name: string): Promise<void> => {
    const text = JSON.stringify({ name, command: "echo it is me" });
    expect(await run("run", "write", "--file", join(cwd, file), "--text", text)).toMatchObject({ code: 0 });
  };
  return { cwd, run, up, process, evil };
}

it("holds an agent that a run wrote until it is accepted, on the runner and on the coordinator", async () => {
  const { run, process, evil } = await served();
  await evil("offers/evil.json", "evil");
  await evil("agents/wicked.json", "wicked");
  await expect.poll(() => process.said).toMatch(/evil is held: it was added while Drover was serving.*DROVER-AGT-010/);
  await expect.poll(() => process.said).toMatch(/wicked is held/);
  const { stdout, stderr } = await run("agents", "list");
  expect(stdout).not.toMatch(/evil|wicked/);
  expect(stderr).toMatch(/held: evil .*drover agents accept evil\n.*held: wicked/s);
  expect((await run("agents", "check", "offers")).stderr).toContain("held: evil");
  expect(await run("run", "evil")).toMatchObject({ code: 2 });
  expect(await run("agents", "accept", "nosuch")).toMatchObject({ code: 2 });
  expect((await run("agents", "accept", "evil")).stdout).toMatch(/^accepted evil \(.*offers\/evil\.json\)\n$/);
  await expect.poll(async () => (await run("agents", "list")).stdout).toContain("evil\t");
  expect(await run("run", "evil")).toMatchObject({ code: 0, stdout: expect.stringContaining("it is me") });
  expect((await run("agents", "accept")).stdout).toContain("accepted wicked");
  await expect.poll(async () => (await run("agents", "list")).stdout).toContain("wicked\t");
  expect(await run("agents", "accept")).toMatchObject({ code: 0, stderr: "No definitions are held.\n" });
});

it("a run cannot change other agents, and a restart accepts nothing", async () => {
  const { run, process, up, evil } = await served();
  await evil("offers/write.json", "write");
  await expect.poll(() => process.said).toMatch(/the change to write is held/);
  await evil("offers/more.json", "more");
  await expect.poll(() => process.said).toMatch(/more is held/);
  await process.end("SIGKILL");
  const again = await up();
  expect(again.said).toMatch(/more is held/);
  expect((await run("agents", "list")).stdout).not.toContain("more\t");
});

it("--accept-agents uses new agents immediately", async () => {
  const { run, evil } = await served("--accept-agents");
  await evil("offers/evil.json", "evil");
  await evil("agents/wicked.json", "wicked");
  await expect.poll(async () => (await run("agents", "list")).stdout).toMatch(/evil\t[^]*wicked\t/);
});
