import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { getCurrentOwner, isOwnerAlive } from "./owner.ts";

it("reports itself as alive, and a process with another boot or start time as dead", () => {
  const owner = getCurrentOwner();
  expect(isOwnerAlive(owner)).toBe(true);
  if (process.platform !== "linux") return;
  const [boot = "", namespace = "", ticks = ""] = owner.start.split(" ");
  expect(boot).toMatch(/^[0-9a-f-]{36}$/);
  expect(namespace).toMatch(/^pid:\[\d+\]$/);
  expect(ticks).toMatch(/^\d+$/);
  expect(isOwnerAlive({ ...owner, start: `${boot} ${namespace} 1` })).toBe(false);
  expect(isOwnerAlive({ ...owner, start: `another-boot ${namespace} ${ticks}` })).toBe(false);
});

it("reports an ended process as dead, by its start and by its pid alone", async () => {
  const child = spawn(process.execPath, ["-e", "0"]);
  await once(child, "exit");
  const owner = { ...getCurrentOwner(), pid: child.pid ?? 0 };
  expect(isOwnerAlive(owner)).toBe(false);
  expect(isOwnerAlive({ ...owner, start: "" })).toBe(false);
  expect(isOwnerAlive({ ...getCurrentOwner(), start: "" })).toBe(true);
});

it.runIf(process.platform === "linux")("reports a zombie as dead", async () => {
  // The shell turns into a program that never reaps the child it has started.
  const parent = spawn("sh", ["-c", "cat <&3 & echo $!; exec sleep 1000"], {
    stdio: ["ignore", "pipe", "ignore", "pipe"],
  });
  const [output] = (await once(parent.stdout!, "data")) as [Buffer];
  const pid = Number(output.toString());
  const [boot, namespace] = getCurrentOwner().start.split(" ");
  const ticks = readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[21];
  const owner = { ...getCurrentOwner(), pid, start: [boot, namespace, ticks].join(" ") };
  try {
    expect(isOwnerAlive(owner)).toBe(true);
    // The shell itself would still reap it.
    await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8")).toBe("sleep\n");
    parent.stdio[3]!.destroy();
    await expect.poll(() => readFileSync(`/proc/${owner.pid}/stat`, "utf8")).toMatch(/\) Z /);
    expect(isOwnerAlive(owner)).toBe(false);
  } finally {
    parent.kill("SIGKILL");
  }
});

it("assumes that processes of another host are alive", () => {
  expect(isOwnerAlive({ pid: 1, start: "no", host: "elsewhere.invalid" })).toBe(true);
});
