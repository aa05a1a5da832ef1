import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { drover, createDirectory, exists, isRoot, nobodyUid, type CommandResult } from "./drover.ts";
import { startDrover } from "./start-drover.ts";

/** A project served by `drover up`, with an agent that writes whatever its prompt says. */
async function startProject(...options: string[]) {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(createDirectory(), "state") };
  for (const name of ["profiles", "offers", "agents"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "profiles", "mine.json"), JSON.stringify({ type: "procedural", agents_dir: "./offers" }));
  const write = `node -e 'fs.writeFileSync(process.argv[2], process.argv[4])' --`;
  writeFileSync(join(cwd, "offers", "write.json"), JSON.stringify({ name: "write", command: write }));
  const run = (...args: string[]): Promise<CommandResult> => drover(args, { cwd, env });
  const up = () => startDrover(["up", "--port", "0", ...options], { cwd, env, ready: /Drover is up at/ });
  const process = await up();
  const evil = async (file: string, name: string): Promise<void> => {
    const text = JSON.stringify({ name, command: "echo it is me" });
    expect(await run("run", "write", "--file", join(cwd, file), "--text", text)).toMatchObject({ code: 0 });
  };
  return { cwd, run, up, process, evil };
}

it("holds an agent that a run wrote until it is accepted, on the runner and on the coordinator", async () => {
  const { run, process, evil } = await startProject();
  await evil("offers/evil.json", "evil");
  await evil("agents/wicked.json", "wicked");
  await expect
    .poll(() => process.output)
    .toMatch(/evil is held: it was added while Drover was serving.*DROVER-AGT-010/);
  await expect
    .poll(() => process.output)
    .toMatch(/wicked is held: .*\[DROVER-AGT-010\] Read the file, then accept it: drover agents accept wicked$/m);
  const { stdout, stderr } = await run("agents", "list");
  expect(stdout).not.toMatch(/evil|wicked/);
  expect(stderr).toMatch(/held: evil .*drover agents accept evil\n.*held: wicked/s);
  expect((await run("agents", "check", "offers")).stderr).toContain("held: evil");
  expect(await run("run", "evil")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /A definition of evil is held \(.*evil\.json\)\. Review it, then .*drover agents accept evil\n$/,
    ),
  });
  expect(await run("agents", "accept", "nosuch")).toMatchObject({ code: 2 });
  expect((await run("agents", "accept", "evil")).stdout).toMatch(/^accepted evil \(.*offers\/evil\.json\)\n$/);
  expect(await run("run", "evil")).toMatchObject({ code: 0, stdout: expect.stringContaining("it is me") });
  expect((await run("agents", "accept")).stdout).toContain("accepted wicked");
  await expect.poll(async () => (await run("agents", "list")).stdout).toContain("wicked\t");
  expect(await run("agents", "accept")).toMatchObject({ code: 0, stderr: "No definitions are held.\n" });
});

it("a run cannot change other agents, and a restart accepts nothing", async () => {
  const { run, process, up, evil } = await startProject();
  await evil("offers/write.json", "write");
  await expect.poll(() => process.output).toMatch(/the change to write is held/);
  await evil("offers/more.json", "more");
  await expect.poll(() => process.output).toMatch(/more is held/);
  await process.end("SIGKILL");
  const restarted = await up();
  expect(restarted.output).toMatch(/more is held/);
  expect((await run("agents", "list")).stdout).not.toContain("more\t");
});

it("does not warn about schedules that the coordinator's copy of an agent keeps", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(createDirectory(), "state") };
  for (const name of ["profiles", "agents"]) mkdirSync(join(cwd, name));
  const schedules = [{ name: "yearly", cron: "0 0 1 1 *" }];
  writeFileSync(join(cwd, "agents", "beat.json"), JSON.stringify({ name: "beat", command: "true", schedules }));
  const profile = join(cwd, "profiles", "mine.json");
  writeFileSync(profile, JSON.stringify({ type: "procedural", agents_dir: "./agents" }));
  const up = await startDrover(["up", "--port", "0", "-x", profile], { cwd, env, ready: /Drover is up at/ });
  expect(up.output).not.toContain("the schedules of beat are ignored");
  expect((await drover(["schedules", "list"], { cwd, env })).stdout).toContain("yearly");
});

it("lists an agent once that the project's directory and a profile share, and says nothing untrue about it", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(createDirectory(), "state") };
  for (const name of ["profiles", "agents"]) mkdirSync(join(cwd, name));
  const schedules = [{ name: "yearly", cron: "0 0 1 1 *" }];
  const writeAgent = (name: string): void =>
    writeFileSync(join(cwd, "agents", `${name}.json`), JSON.stringify({ name, command: "true", schedules }));
  writeAgent("beat");
  writeFileSync(join(cwd, "profiles", "mine.json"), JSON.stringify({ type: "procedural", agents_dir: "./agents" }));
  const listed = await drover(["agents", "list"], { cwd, env });
  expect(listed.stdout.match(/^beat\t/gm)).toEqual(["beat\t"]);
  expect(listed.stderr).toBe("");
  expect((await drover(["agents", "check"], { cwd, env })).stderr).toBe("Checked 1 file.\n");
  const up = await startDrover(["up", "--port", "0"], { cwd, env, ready: /Drover is up at/ });
  writeAgent("late");
  await expect.poll(() => up.output.match(/late is held/g)).toHaveLength(2);
  expect((await drover(["agents", "list"], { cwd, env })).stderr.match(/held: late/g)).toHaveLength(1);
});

it("`agents check` warns about a schedule that is ignored because only a runner offers its agent", async () => {
  const cwd = createDirectory();
  for (const name of ["profiles", "offers"]) mkdirSync(join(cwd, name));
  const schedules = [{ name: "yearly", cron: "0 0 1 1 *" }];
  writeFileSync(join(cwd, "offers", "beat.json"), JSON.stringify({ name: "beat", command: "true", schedules }));
  writeFileSync(join(cwd, "profiles", "mine.json"), JSON.stringify({ type: "procedural", agents_dir: "./offers" }));
  const { code, stderr } = await drover(["agents", "check"], { cwd });
  expect(code).toBe(0);
  expect(stderr).toContain("beat.json: the schedules of beat are ignored, because a runner offers this agent.");
});

// Each sees the project at /mnt, and the test changes it from outside.
const readOnlyProjects: [where: string, owner: number | undefined, mount: string][] = [
  ["on a read-only mount", isRoot ? nobodyUid : undefined, "mount -o remount,bind,ro /mnt"],
  ...(isRoot ? [["of another user", 0, "true"] satisfies [string, number, string]] : []),
];
it.each(readOnlyProjects)("holds nothing in a project %s", async (_where, owner, mount) => {
  const project = createDirectory(owner);
  const agents = join(project, "agents");
  mkdirSync(agents);
  const writeAgent = (name: string, command: string): void => {
    writeFileSync(join(agents, `${name}.json`), JSON.stringify({ name, command }));
    if (owner !== undefined) for (const path of [agents, join(agents, `${name}.json`)]) chownSync(path, owner, owner);
  };
  writeAgent("old", "echo first");
  const user = isRoot ? { uid: nobodyUid } : {};
  const env = { DROVER_STATE_DIR: join(createDirectory(user.uid), "state"), DROVER_TRUST: "/mnt" };
  const up = await startDrover(["up", "--port", "0"], {
    cwd: project,
    env,
    ready: /Drover is up at/,
    commandPrefix: [
      "unshare",
      "-Urm",
      "sh",
      "-c",
      `mount --bind '${project}' /mnt && ${mount} && cd /mnt && exec "$@"`,
      "sh",
    ],
    ...user,
  });
  writeAgent("old", "echo second");
  writeAgent("late", "echo late");
  const show = async (name: string): Promise<string> =>
    (await drover(["agents", "show", name], { cwd: project, env, ...user })).stdout;
  await expect.poll(() => show("late")).toContain("echo late");
  await expect.poll(() => show("old")).toContain("echo second");
  expect(up.output).not.toContain("is held");
});

it("finishes a run although a huge file with 50,000 keys appears among the agents meanwhile", async () => {
  const { cwd, run, process } = await startProject("--accept-agents");
  writeFileSync(
    join(cwd, "wait.sh"),
    `touch ${cwd}/began; until [ -e ${cwd}/go ]; do sleep 0.1; done; echo to the end`,
  );
  writeFileSync(join(cwd, "offers", "wait.json"), JSON.stringify({ name: "wait", command: `sh ${cwd}/wait.sh` }));
  await expect.poll(async () => (await run("agents", "list")).stdout).toContain("wait\t");
  const waiting = run("run", "wait");
  await expect.poll(() => exists(join(cwd, "began"))).toBe(true);
  const keys = Array.from({ length: 50_000 }, (_, index) => `key${index}: v${index}\n`);
  // One directory is read by the runner, the other by the coordinator.
  for (const directory of ["offers", "agents"]) writeFileSync(join(cwd, directory, "huge.yaml"), keys.join(""));
  for (const directory of ["offers", "agents"])
    await expect
      .poll(() => process.output)
      .toMatch(new RegExp(`${directory}/huge\\.yaml:\\d+: .*more than 10000 keys and list items.*DROVER-AGT-009`));
  writeFileSync(join(cwd, "go"), "");
  expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringContaining("to the end") as string });
  // A later attempt would be named.
  await expect.poll(() => process.output).toMatch(/ of wait: completed after /);
});

it("--accept-agents uses new agents immediately", async () => {
  const { run, evil } = await startProject("--accept-agents");
  await evil("offers/evil.json", "evil");
  await evil("agents/wicked.json", "wicked");
  await expect.poll(async () => (await run("agents", "list")).stdout).toMatch(/evil\t[^]*wicked\t/);
});

it("keeps using the last valid definition of a file with an error, and warns about it", async () => {
  const { cwd, run, process } = await startProject("--accept-agents");
  const file = join(cwd, "agents", "greet.json");
  const writeVersion = (text: string): void =>
    writeFileSync(file, JSON.stringify({ name: "greet", command: `echo ${text}` }));
  const greet = async (): Promise<string> => (await run("run", "greet")).stdout;
  writeVersion("first");
  await expect.poll(greet).toContain("first");
  const warning = "drover: warning: the file of greet has an error, so its previous version is still in use: ";

  writeFileSync(file, '{ "name": "greet", "command": "echo second", "comand": 1 }');
  await expect.poll(() => process.output).toMatch(/greet\.json:1: .*comand/);
  const listed = await run("agents", "list");
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^greet\tprocedural\tfile\t/m) as string });
  expect(listed.stderr).toContain(`${warning}${file}:1: `);
  expect(listed.stderr).toContain("comand");
  expect(JSON.parse((await run("agents", "show", "greet")).stdout)).toMatchObject({
    command: "echo first",
    fault: expect.stringContaining("comand") as string,
  });
  expect(await run("run", "greet")).toMatchObject({ code: 0, stdout: expect.stringContaining("first") as string });

  writeVersion("third");
  await expect.poll(greet).toContain("third");
  expect((await run("agents", "list")).stderr).not.toContain(warning);
});
