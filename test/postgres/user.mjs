import { readFileSync } from "node:fs";

/**
 * The user to run PostgreSQL, which refuses to run as root: another user if this process is root, otherwise null.
 * @returns {{ uid: number, gid: number } | null}
 */
export function findOrdinaryUser() {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const [, , uid = "65534", gid = "65534"] =
    users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody") ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}
