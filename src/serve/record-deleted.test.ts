import { chmodSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { databaseFile, recordDirectory } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { rawCall } from "../../test/http-call.ts";
import { HostError } from "../model/errors.ts";
import { restoreStore } from "../record/restore.ts";
import { openStore } from "../record/open.ts";

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  await coordinator.client.agents.put("work", {
    name: "work",
    type: "procedural",
    command: "true",
  });
});
afterEach(() => coordinator.dispose());

const health = async () => {
  const { status, text } = await rawCall(coordinator.url, { path: "/health" });
  return { status, code: JSON.parse(text).code, text };
};
const submit = () => coordinator.client.submit({ agent_name: "work" });

test("a coordinator whose database was deleted is unhealthy, refuses writes, logs it and rescues its data", async () => {
  const acknowledgedIds: string[] = [];
  for (let index = 0; index < 80; index += 1) acknowledgedIds.push((await submit()).run_id);
  expect(await health()).toMatchObject({ status: 200 });
  rmSync(databaseFile(recordDirectory(coordinator.directory)));
  // The deletion shows at once, even if the last result is still cached.
  expect(await health()).toMatchObject({ status: 503, code: "DROVER-STA-012" });
  expect((await health()).text).not.toContain(coordinator.directory);
  // Writes acknowledged before the deletion was noticed are in the rescued record too.
  for (let isRefused = false; !isRefused;)
    await submit().then(
      ({ run_id }) => acknowledgedIds.push(run_id),
      (error) => {
        expect(error).toMatchObject({ code: "DROVER-STA-012" });
        isRefused = true;
      },
    );
  await expect(submit()).rejects.toMatchObject({ code: "DROVER-STA-012" });
  // Reads still work.
  expect((await coordinator.client.runs.get(acknowledgedIds[0]!)).run_id).toBe(acknowledgedIds[0]);
  const reported = coordinator.defects.filter(
    (defect) => defect instanceof HostError && defect.code === "DROVER-STA-012",
  );
  expect(reported).toHaveLength(1);
  const [name, ...more] = readdirSync(recordDirectory(coordinator.directory)).filter((item) =>
    item.endsWith(".backup"),
  );
  expect(more).toEqual([]);
  expect(reported[0]).toMatchObject({ next: expect.stringContaining(name!) });

  const directory = join(coordinator.directory, "restored");
  await restoreStore({
    directory,
    file: join(recordDirectory(coordinator.directory), name!),
    now: new Date(),
    keepTokens: true,
  });
  const restored = await openStore({ directory, now: () => new Date() });
  const restoredRuns = await Promise.all(acknowledgedIds.map((run_id) => restored.read.run(run_id)));
  await restored.close();
  expect(restoredRuns.filter((run) => run === null)).toEqual([]);
});

test("an idle coordinator reports that its database is gone, and recovers when it is back", async () => {
  const file = databaseFile(recordDirectory(coordinator.directory));
  renameSync(file, `${file}.aside`);
  await expect
    .poll(() => coordinator.defects.map((defect) => Reflect.get(Object(defect), "code")))
    .toContain("DROVER-STA-012");
  renameSync(`${file}.aside`, file);
  await expect.poll(async () => (await health()).status).toBe(200);
  expect((await submit()).status).toBe("pending");
});

test.skipIf(process.getuid?.() === 0)("a coordinator that cannot write to its directory is unhealthy", async () => {
  chmodSync(recordDirectory(coordinator.directory), 0o500);
  try {
    expect(await health()).toMatchObject({ status: 503, code: "DROVER-STA-001" });
  } finally {
    chmodSync(recordDirectory(coordinator.directory), 0o700);
  }
  expect(existsSync(coordinator.directory)).toBe(true);
});
