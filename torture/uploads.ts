import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";
import { createClient } from "../src/wire/client.ts";
import { type ClaimedRun, claimOverHttp, hashBytes } from "../test/fixtures/dispatch/claimed.ts";
import { hostilePaths } from "../test/fixtures/dispatch/hostile-paths.ts";
import type { CoordinatorSlot } from "./coordinators.ts";
import type { Finding, Tools } from "./finding.ts";
import { withTestbed, type Testbed } from "./testbed.ts";
import { listNames, findOutsiders, listParts } from "./upload-traces.ts";
import { forEachConcurrently, retryWhileUnreachable, countUpTo, waitFor } from "./wait.ts";

interface Seen {
  kept: number;
  hostile: number;
  lies: number;
  cuts: number;
  killed: number;
  broken: string[];
}

/**
 * S11: files with hostile names or with other sizes and hashes than announced, and uploads that are interrupted or whose
 * coordinator is killed. Nothing is written outside its directory or stored in part, and stored files come back unchanged
 * from any coordinator.
 */
export async function uploads({ rounds, kills }: { rounds: number; kills: number }, tools: Tools): Promise<Finding> {
  return withTestbed(tools, { leaseMs: 3_600_000 }, async (testbed) => {
    const seen: Seen = { kept: 0, hostile: 0, lies: 0, cuts: 0, killed: 0, broken: [] };
    const namesBefore = listNames(testbed);
    await forEachConcurrently(countUpTo(rounds), 4, async (round) => {
      await oneRound(testbed, round, seen);
      if ((round + 1) % 25 === 0) tools.progress(`${round + 1} of ${rounds} runs`);
    });
    // After the rounds, which a restart would disturb.
    for (const index of countUpTo(kills)) await killedInUpload(testbed, index, seen);
    seen.broken.push(...findOutsiders(testbed, namesBefore), ...(await listParts(testbed)));
    const { broken, ...counts } = seen;
    return {
      seen: {
        "files kept": counts.kept,
        "hostile names": counts.hostile,
        "not as announced": counts.lies,
        "cut off": counts.cuts,
        "coordinators killed": counts.killed,
        "outside, partial or changed": broken.length,
      },
      broken,
      late: [],
    };
  });
}

async function oneRound(testbed: Testbed, round: number, seen: Seen): Promise<void> {
  const index = round % testbed.coordinators.length;
  const { url } = testbed.coordinators[index]!;
  const run = await claimOverHttp(createPortAt(testbed, url), `uploader-${round}`);
  try {
    const kept = new Map<string, Buffer>();
    for (const [no, size] of [0, 1, 70_000, 1_500_000].entries()) {
      const bytes = randomBytes(size);
      await run.keep(`out/${no}/fïle ${no}`, bytes);
      kept.set(`out/${no}/fïle ${no}`, bytes);
    }
    await uploadHostileNames(run, round, seen);
    await uploadLies(run, seen);
    await interruptUpload(testbed, url, run, seen);
    const otherCoordinatorCoordinator = testbed.coordinators[(index + 1) % testbed.coordinators.length]!;
    await compare(testbed, otherCoordinatorCoordinator, run.run_id, kept, seen);
  } finally {
    await run.finish();
    run.port.close();
  }
}

function createPortAt({ token }: Testbed, url: string) {
  return { url, adminToken: token, client: createClient({ url, token }) };
}

async function uploadHostileNames(run: ClaimedRun, round: number, seen: Seen): Promise<void> {
  const bytes = Buffer.from(`hostile ${round}`);
  await run.upload(bytes);
  const file = { type: "file", size: bytes.length, sha256: hashBytes(bytes), media_type: "text/plain" } as const;
  await run.append(...hostilePaths.map((path) => ({ ...file, path })));
  seen.hostile += hostilePaths.length;
}

/** A wrong hash, a wrong size, too many bytes, and a file that was never uploaded. */
async function uploadLies(run: ClaimedRun, seen: Seen): Promise<void> {
  const bytes = randomBytes(5000);
  const tries: Record<string, () => Promise<unknown>> = {
    "another hash": () => run.upload(bytes, { sha256: hashBytes(randomBytes(8)) }),
    "too short": () => run.upload(bytes.subarray(0, 4000), { sha256: hashBytes(bytes), size: 5000 }),
    "too long": () => run.upload(Buffer.concat([bytes, bytes]), { sha256: hashBytes(bytes), size: 5000 }),
    "too large": () => run.upload(bytes, { size: 1e12 }),
    "no hash": () => run.upload(bytes, { sha256: "../../../etc/passwd" }),
    "a stale attempt": () => run.upload(bytes, { attempt: 7 }),
  };
  for (const [what, upload] of Object.entries(tries)) {
    const answer = await upload().then(
      (given) => JSON.stringify(given),
      () => "refused",
    );
    if (answer.includes("stored")) seen.broken.push(`${what} was stored`);
    seen.lies += 1;
  }
  await run.append({
    type: "file",
    path: "never",
    size: 5,
    sha256: hashBytes(Buffer.from("never")),
    media_type: "a/b",
  });
}

async function interruptUpload({ token }: Testbed, url: string, run: ClaimedRun, seen: Seen): Promise<void> {
  const bytes = randomBytes(3_000_000);
  await sendSome(url, token, run, bytes, Math.floor(Math.random() * bytes.length));
  seen.cuts += 1;
  await run.append({ type: "file", path: "cut", size: bytes.length, sha256: hashBytes(bytes), media_type: "a/b" });
}

/** Sends `most` bytes and breaks the connection. */
function sendSome(url: string, token: string, run: ClaimedRun, bytes: Buffer, max: number): Promise<void> {
  const query = new URLSearchParams({
    runner_id: run.runner.runner_id,
    epoch: String(run.runner.epoch),
    run_id: run.run_id,
    attempt: String(run.attempt),
    sha256: hashBytes(bytes),
    size: String(bytes.length),
  });
  return new Promise((resolve) => {
    const sent = request(`${url}/runner/files?${String(query)}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-length": bytes.length },
      agent: false,
    });
    sent.on("error", () => undefined); // Either side may break it.
    sent.once("close", () => resolve());
    sent.write(bytes.subarray(0, max), () => setTimeout(() => sent.destroy(), 20));
  });
}

/** The coordinator dies in the middle of an upload, and the runner repeats it at another. */
async function killedInUpload(testbed: Testbed, index: number, seen: Seen): Promise<void> {
  const slot = testbed.coordinators[index % testbed.coordinators.length]!;
  const run = await retryWhileUnreachable(() => claimOverHttp(createPortAt(testbed, testbed.url), `killed-${index}`));
  const bytes = randomBytes(8_000_000);
  const sending = sendSome(slot.url, testbed.token, run, bytes, bytes.length - 1);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
  slot.child.signal("SIGKILL");
  await slot.child.closed;
  await sending;
  await slot.start();
  seen.killed += 1;
  const file = {
    type: "file",
    path: "killed",
    size: bytes.length,
    sha256: hashBytes(bytes),
    media_type: "a/b",
  } as const;
  await retry(() => run.append(file));
  await compare(testbed, slot, run.run_id, new Map(), seen);
  await retry(() => run.keep("brought again", bytes));
  await compare(testbed, slot, run.run_id, new Map([["brought again", bytes]]), seen);
  await retry(() => run.finish());
  run.port.close();
}

/** Retries until the balancer reaches a live coordinator. */
async function retry(work: () => Promise<void>): Promise<void> {
  let last: unknown = null;
  const done = await waitFor(
    () =>
      work().then(
        () => true,
        (error: unknown) => {
          last = error;
          return null;
        },
      ),
    30_000,
  );
  if (done === null) throw last;
}

/** Checks that the run has exactly these files, as read from another coordinator. */
async function compare(
  { token }: Testbed,
  slot: CoordinatorSlot,
  run_id: string,
  kept: ReadonlyMap<string, Buffer>,
  seen: Seen,
): Promise<void> {
  const client = createClient({ url: slot.url, token });
  const listed = (await client.runs.files(run_id)).items.map(({ path }) => path).sort();
  if (JSON.stringify(listed) !== JSON.stringify([...kept.keys()].sort()))
    seen.broken.push(`${run_id} has ${JSON.stringify(listed).slice(0, 500)}`);
  for (const [path, bytes] of kept) {
    const hash = createHash("sha256");
    for await (const chunk of (await client.runs.file(run_id, path)).stream) hash.update(chunk);
    if (hash.digest("hex") === hashBytes(bytes)) seen.kept += 1;
    else seen.broken.push(`${path} of ${run_id} came back otherwise`);
  }
}
