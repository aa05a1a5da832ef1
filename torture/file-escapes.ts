import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Face, type FaceName, faceNames, openFace } from "./file-tool-faces.ts";
import type { Finding, Tools } from "./finding.ts";
import {
  canary,
  createHostilePaths,
  isOutside,
  createHostileWorkspace,
  type HostileWorkspace,
  findRealPath,
} from "./hostile-paths.ts";

type Size = { vectors: number; raceSeconds: number };
type Judge = (face: string, call: Call, answer: string) => void;

/** S1: asks the six file tools, through each of their interfaces, for paths outside the workspace, also while a directory is being swapped for a link. */
export async function fileEscapes(size: Size, tools: Pick<Tools, "root" | "progress">): Promise<Finding> {
  const broken: string[] = [];
  const seen = { calls: 0, refused: 0, races: 0, swaps: 0 };
  const judge: Judge = (face, call, answer) => {
    seen.calls += 1;
    if (answer.includes('"ok":false')) seen.refused += 1;
    else if (!answer.includes('"ok":true')) broken.push(`${face} did not answer ${JSON.stringify(call)}: ${answer}`);
    if (answer.includes(canary)) broken.push(`${face} returned content from outside: ${JSON.stringify(call)}`);
  };
  const tried = await Promise.all(
    faceNames.map(async (name) => {
      // The program starts a process per call, so run several in parallel, each in its own workspace.
      const shares = name === "program" ? 4 : 1;
      const found = Array.from({ length: shares }, (_, share) =>
        withFaces([name], tools.root, broken, (workspace, faces) => {
          const paths = createHostilePaths(workspace, size.vectors).filter((_path, index) => index % shares === share);
          return tryPaths(workspace, faces[0]!, paths, judge, broken);
        }),
      );
      const paths = sum(await Promise.all(found));
      tools.progress(`${name}: ${paths} paths`);
      return paths;
    }),
  );
  await withFaces(faceNames, tools.root, broken, async (workspace, faces) => {
    for (const call of createRaceCalls) {
      const { calls, swaps } = await race(workspace, faces, call, size.raceSeconds, judge);
      seen.races += sum(calls.values());
      seen.swaps += swaps;
      const created = [...calls].map(([face, count]) => `${face} ${count}`).join(", ");
      tools.progress(`${call.tool}: calls ${created}; swaps ${swaps}`);
    }
  });
  return {
    seen: {
      paths: Math.min(...tried),
      faces: faceNames.length,
      calls: seen.calls,
      refused: seen.refused,
      "calls in races": seen.races,
      swaps: seen.swaps,
      escapes: broken.length,
    },
    broken,
    late: [],
  };
}

/** Opens interfaces to one workspace and checks afterwards that nothing outside it changed. */
async function withFaces<T>(
  names: readonly FaceName[],
  root: string,
  broken: string[],
  work: (workspace: HostileWorkspace, faces: readonly Face[]) => Promise<T>,
): Promise<T> {
  const workspace = createHostileWorkspace();
  const before = computeFingerprint(workspace.outside);
  const faces = await Promise.all(names.map((name) => openFace(name, workspace.root, root)));
  try {
    return await work(workspace, faces);
  } finally {
    await Promise.all(faces.map((face) => face.close()));
    if (computeFingerprint(workspace.outside) !== before)
      broken.push(`something outside was changed (${names.join(", ")})`);
    rmSync(workspace.base, { recursive: true, force: true });
  }
}

/** Returns the number of distinct paths tried. */
async function tryPaths(
  workspace: HostileWorkspace,
  face: Face,
  paths: readonly string[],
  judge: Judge,
  broken: string[],
) {
  for (const path of paths) {
    const real = findRealPath(workspace, path);
    const leadsOut = real !== null && isOutside(workspace, real);
    for (const call of createCalls(path)) {
      const answer = await face.call(call);
      judge(face.name, call, answer);
      if (!answer.includes('"ok":true')) continue;
      // A link that leads outside may be deleted or replaced, since both act on the link itself.
      if (leadsOut && opens.has(call.tool) && call["path"] === path)
        broken.push(`${face.name} opened ${real}: ${JSON.stringify(call)}`);
      workspace.restore();
    }
  }
  return new Set(paths).size;
}

type Call = { tool: string } & Record<string, unknown>;

function createCalls(path: string): Call[] {
  return [
    { tool: "file.read", path },
    { tool: "file.write", path, content: "overwritten" },
    { tool: "file.patch", path, patches: [{ find: canary, replace: "patched" }] },
    { tool: "file.list", path },
    { tool: "file.list", path: ".", pattern: `${path}**` },
    { tool: "file.search", pattern: "CANARY", path },
    { tool: "file.delete", path },
  ];
}

const opens = new Set(["file.read", "file.patch", "file.list", "file.search"]);

const createRaceCalls: readonly Call[] = [
  { tool: "file.read", path: "swap/secret" },
  { tool: "file.write", path: "swap/secret", content: "inside\n" },
  { tool: "file.patch", path: "swap/secret", patches: [{ find: canary, replace: "patched" }] },
  { tool: "file.delete", path: "swap/secret" },
  { tool: "file.list", path: "swap", pattern: "**" },
  { tool: "file.search", pattern: "CANARY|inside", path: "swap" },
];

/** Calls the tool while a thread keeps swapping the directory for a link to the outside and back. */
async function race(
  { root, outside }: HostileWorkspace,
  faces: readonly Face[],
  call: Call,
  seconds: number,
  judge: Judge,
): Promise<{ calls: Map<string, number>; swaps: number }> {
  rmSync(join(root, "swap"), { recursive: true, force: true });
  mkdirSync(join(root, "swap"));
  writeFileSync(join(root, "swap/secret"), "inside\n");
  const swapper = new Worker(swapping, { eval: true, workerData: { root, target: outside } });
  let swaps = 0;
  const ended = new Promise<void>((resolve, reject) => {
    swapper.on("message", (count: number) => (swaps = count));
    swapper.once("exit", () => resolve());
    swapper.once("error", reject);
  });
  const deadline = performance.now() + seconds * 1000;
  const calls = new Map<string, number>();
  await Promise.all(
    faces.map(async (face) => {
      do {
        judge(face.name, call, await face.call(call));
        calls.set(face.name, (calls.get(face.name) ?? 0) + 1);
      } while (performance.now() < deadline);
    }),
  );
  swapper.postMessage("stop", []);
  await ended;
  return { calls, swaps };
}

const swapping = `
  const { parentPort, receiveMessageOnPort, workerData: { root, target } } = require("node:worker_threads");
  const { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require("node:fs");
  const at = (name) => root + "/" + name;
  let swaps = 0;
  while (receiveMessageOnPort(parentPort) === undefined) {
    try { mkdirSync(at("swap")); } catch {}
    try { if (!existsSync(at("swap/secret"))) writeFileSync(at("swap/secret"), "inside\\n"); } catch {}
    // A tool that had the directory open may have written a file into it.
    try { rmSync(at("aside"), { recursive: true, force: true }); } catch { continue; }
    try { renameSync(at("swap"), at("aside")); } catch { continue; }
    // A tool that writes may have recreated the directory.
    try { symlinkSync(target, at("swap")); } catch { continue; }
    swaps += 1;
    for (let spin = 0; spin < swaps % 50 * 1000; spin++);
    try { unlinkSync(at("swap")); } catch {}
    try { renameSync(at("aside"), at("swap")); } catch {}
  }
  parentPort.postMessage(swaps);
`;

/** A hash over the names, types and contents of everything below a directory. */
function computeFingerprint(directory: string): string {
  const hash = createHash("sha256");
  const walk = (path: string): void => {
    for (const name of readdirSync(path).sort()) {
      const at = join(path, name);
      const seen = lstatSync(at);
      hash.update(`${at}\0${seen.mode}\0${seen.nlink}\0`);
      if (seen.isDirectory()) walk(at);
      else hash.update(seen.isSymbolicLink() ? readlinkSync(at) : readFileSync(at));
    }
  };
  walk(directory);
  return hash.digest("hex");
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((total, number) => total + number, 0);
}
