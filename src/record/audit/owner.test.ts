import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { currentOwner, ownerIsAlive } from "./owner.ts";

it("sees itself as alive, and itself after a reboot or with another start as dead", () => {
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

it("sees an ended process as dead, by its start and by its pid alone", async () => {
  const child = spawn(process.execPath, ["-e", "0"]);
  await once(child, "exit");
  const owner = { ...currentOwner(), pid: child.pid ?? 0 };
  expect(ownerIsAlive(owner)).toBe(false);
  expect(ownerIsAlive({ ...owner, start: "" })).toBe(false);
  expect(ownerIsAlive({ ...currentOwner(), start: "" })).toBe(true);
});

it.runIf(process.platform === "linux")("counts a zombie as dead", async () => {
  // The shell turns into a program that never reaps the child it has started.
  const parent = spawn("sh", ["-c", "cat <&3 & echo $!; exec sleep 1000"], {
    stdio: ["ignore", "pipe", "ignore", "pipe"],
  });
  const [output] = (await once(parent.stdout!, "data")) as [Buffer];
  const pid = Number(output.toString());
  const [boot, namespace] = currentOwner().start.split(" ");
  const ticks = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[21];
  const owner = { ...currentOwner(), pid, start: [boot, namespace, ticks].join(" ") };
  try {
    expect(ownerIsAlive(owner)).toBe(true);
    // The shell itself would still reap it.
    await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n");
    parent.stdio[3]!.destroy();
    await expect.poll(() => readFileSync(`/proc/${owner.pid}/stat`, "utf8")).toMatch(/\) Z /);
    expect(ownerIsAlive(owner)).toBe(false);
  } finally {
    parent.kill("SIGKILL");
  }
});

it("assumes that processes of another host are alive", () => {
  expect(ownerIsAlive({ pid: 1, start: "no", host: "elsewhere.invalid" })).toBe(true);
});
