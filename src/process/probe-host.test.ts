import { expect, test } from "vitest";
import { hostHas } from "../../test/fixtures/process/host.ts";
import { stripAdvice, isolationMissing, limitMissing } from "./faults.ts";
import { probeHost } from "./probe-host.ts";

test("reports which capabilities work on this host, and a cause and a next step for the others", async () => {
  const report = await probeHost();
  expect(report.isolation.none).toEqual({ works: true });
  expect(report.isolation.group).toEqual({ works: true });
  expect(report.isolation.pid.works).toBe(hostHas("pid"));
  expect(report.isolation.sandbox.works).toBe(hostHas("sandbox"));
  expect(report.auto).toBe(hostHas("pid") ? "pid" : "group");
  expect(report.limits.openFiles).toEqual({ works: true });
  for (const finding of [
    ...Object.values(report.isolation),
    ...Object.values(report.limits),
    ...Object.values(report.launchers),
  ]) {
    if (!finding.works)
      expect(finding).toEqual({ works: false, why: expect.stringMatching(/\w/), next: expect.stringMatching(/\w/) });
  }
});

test("omits the advice to run doctor from the cause that doctor shows", () => {
  const faults = [isolationMissing("pid", "it is refused"), limitMissing("memoryBytes", "there is no cgroup")];
  expect(faults.map((fault) => fault.message.includes("drover doctor"))).toEqual([true, true]);
  expect(faults.map(stripAdvice)).toEqual([
    'Isolation "pid" is not available on this host: it is refused.',
    "The limit on memory cannot be applied on this host: there is no cgroup.",
  ]);
});
