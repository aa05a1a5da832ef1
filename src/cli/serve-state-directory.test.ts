import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { recordDirectory } from "../model/state-layout.ts";
import { registration } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { recordRuns } from "../../test/fixtures/record/sample.ts";
import { openStore } from "../record/open.ts";
import { findProject } from "../local.ts";
import { openProfiles, findProfileDirectories } from "../compose/open-profiles.ts";
import { createHttpPort } from "../wire/http-port.ts";
import { connect } from "./connect.ts";
import { readListenAddress, serveStateDirectory } from "./serve-state-directory.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

function createInput(cwd: string) {
  const env = { DROVER_TRUST: cwd, DROVER_STATE_DIR: join(cwd, "state") };
  return { options: {}, positionals: [], rest: null, extraOptions: [], env, cwd };
}

async function serveIn(cwd: string) {
  const input = createInput(cwd);
  return serveStateDirectory(input, await findProject(input.env, cwd), { host: "127.0.0.1", port: 0 });
}

function createDirectory(): string {
  const cwd = mkdtempSync(join(tmpdir(), "drover-serve-"));
  cleanups.push(() => rmSync(cwd, { recursive: true, force: true }));
  return cwd;
}

/** Registers a runner with a coordinator started in this directory and returns the response. */
async function registerIn(cwd: string) {
  const coordinator = await serveIn(cwd);
  const port = createHttpPort({ url: coordinator.url, token: coordinator.adminToken, pollHoldMs: 1000 });
  try {
    return { ...(await port.register(registration("runner"))), id: await coordinator.store.storeId() };
  } finally {
    port.close();
    await coordinator.stop();
  }
}

it("tells runners the id of its record and the file size limit from drover.yaml", async () => {
  const cwd = createDirectory();
  const first = await registerIn(cwd);
  expect(first).toMatchObject({ store_id: first.id, max_file_bytes: 50 * 1024 * 1024 });
  writeFileSync(join(cwd, "drover.yaml"), "files:\n  max_file_mb: 200\n");
  expect(await registerIn(cwd)).toMatchObject({ store_id: first.id, max_file_bytes: 200 * 1024 * 1024 });
});

it("uses the agents, public URLs and profiles that drover.yaml names", async () => {
  const cwd = createDirectory();
  for (const name of ["defs", "offers", "below"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "defs", "a.yaml"), "name: configured\ncommand: ls\n");
  writeFileSync(join(cwd, "offers", "own.json"), '{ "type": "procedural" }');
  writeFileSync(
    join(cwd, "drover.yaml"),
    "agents: defs\nprofiles: offers\npublic_urls: [https://drover.example]\nisolation: group\n",
  );
  const coordinator = await serveIn(cwd);
  cleanups.push(() => coordinator.stop());
  const request = { path: "/agents", method: "GET", headers: { authorization: `Bearer ${coordinator.adminToken}` } };
  const { status, text } = await rawCall(coordinator.url, {
    ...request,
    headers: { ...request.headers, host: "drover.example" },
  });
  expect(status).toBe(200);
  expect(text).toContain('"configured"');

  const { config } = await findProject({ DROVER_TRUST: cwd }, join(cwd, "below"));
  const directories = findProfileDirectories(join(cwd, "below"), config, false, {});
  expect(directories[0]).toBe(join(cwd, "offers"));
  const opened = await openProfiles({
    names: ["own"],
    directories,
    isolation: config.isolation,
    env: {},
    onNotice: () => undefined,
  });
  expect(opened.profiles).toMatchObject([{ loaded: { name: "own", profile: { isolation: "group" } } }]);
  await opened.stop();
  expect(() => findProfileDirectories(cwd, { profiles: join(cwd, "none") }, false, {})).toThrow(
    expect.objectContaining({ code: "DROVER-CFG-004", field: "profiles" }),
  );
});

it("deletes runs that are older than the retention in drover.yaml", async () => {
  const cwd = createDirectory();
  writeFileSync(join(cwd, "drover.yaml"), "retention:\n  runs_days: 0.001\n");
  const getAnHourAgo = () => new Date(Date.now() - 3_600_000);
  const store = await openStore({
    directory: recordDirectory(join(cwd, "state")),
    now: getAnHourAgo,
    createIfMissing: true,
  });
  // The newest run is kept regardless of its age.
  const [oldRun] = await recordRuns(store, 2);
  await store.close();
  const coordinator = await serveIn(cwd);
  cleanups.push(() => coordinator.stop());
  await expect.poll(() => coordinator.store.read.run(oldRun!)).toBeNull();
});

it.each(["up", "coordinator"] as const)("refers to the help of %s if --port is invalid", (command) => {
  const input = { options: { port: "http" }, positionals: [], rest: null, extraOptions: [], env: {}, cwd: "/" };
  const fault = { code: "DROVER-USE-001", field: "--port", next: `See \`drover ${command} --help\`.` };
  expect(() => readListenAddress(input, command)).toThrow(expect.objectContaining(fault));
});

it("refuses a second coordinator in the same state directory, and keeps the first one's announcement", async () => {
  const cwd = createDirectory();
  const attempts = await Promise.allSettled([serveIn(cwd), serveIn(cwd), serveIn(cwd)]);
  const coordinators = attempts.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
  const errors = attempts.flatMap((attempt) =>
    attempt.status === "rejected" ? [attempt.reason as { code: string }] : [],
  );
  expect([coordinators.length, errors.map(({ code }) => code)]).toEqual([1, ["DROVER-STA-011", "DROVER-STA-011"]]);
  cleanups.push(() => coordinators[0]?.stop());
  await expect(serveIn(cwd)).rejects.toThrow("still starting");
  expect((await connect(createInput(cwd))).client).toBeNull();
  coordinators[0]?.announce();
  const { client } = await connect(createInput(cwd));
  expect(client?.url).toBe(coordinators[0]?.url);
  await expect(serveIn(cwd)).rejects.toThrow(`at ${coordinators[0]?.url} (process ${process.pid})`);

  await coordinators[0]?.stop();
  expect((await connect(createInput(cwd))).client).toBeNull();
  await (await serveIn(cwd)).stop();
});
