import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { currentOwner, ownerIsAlive } from "./owner.ts";

it("knows itself as alive, and itself after a reboot or with another start as dead", () => {
  const owner = currentOwner();
  expect(ownerIsAlive(owner)).toBe(true);
  if (process.platform !== "linux") return;
  const [boot = "", namespace = "", ticks = ""] = owner.start.split(" ");
  expect(boot).toMatch(/^[0-9a-f-]{36}$/);
  expect(namespace).toMatch(/^pid:\[\d+\]$/);
  expect(ticks).toMatch(/^\d+$/);
  expect(ownerIsAlive({ ...owner, start: `${boot} ${namespace} 1` })).toBe(false);
  expect(ownerIsAlive({ ...owner, start: `another-boot ${namespace} ${ticks}` })).toBe(false);
});

it("knows a process that ended as dead, by its start and by its pid alone", async () => {
  const child = spawn(process.execPath, ["-e", "0"]);
  await once(child, "exit");
  const owner = { ...currentOwner(), pid: child.pid ?? 0 };
  expect(ownerIsAlive(owner)).toBe(false);
  expect(ownerIsAlive({ ...owner, start: "" })).toBe(false);
  expect(ownerIsAlive({ ...currentOwner(), start: "" })).toBe(true);
});

it("does not judge processes of another host", () => {
  expect(ownerIsAlive({ pid: 1, start: "no", host: "elsewhere.invalid" })).toBe(true);
});
