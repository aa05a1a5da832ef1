// Builds native/bin/drover-init-linux-{x64,arm64} from native/src.
//   node scripts/build-native.mjs           builds and replaces the committed binaries
//   node scripts/build-native.mjs --check   builds elsewhere and compares byte for byte
// Exit codes: 0 built or identical, 1 different or failed to compile, 2 wrong arguments, 3 the required compiler or linker
// is missing or has another version.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const sources = join(root, "native", "src");
const binaries = join(root, "native", "bin");

const targets = [
  {
    file: "drover-init-linux-x64",
    compiler: "gcc",
    machine: "x86_64-linux-gnu",
    debianPackage: "gcc",
    flags: ["-fcf-protection=none"],
  },
  {
    file: "drover-init-linux-arm64",
    compiler: "aarch64-linux-gnu-gcc",
    machine: "aarch64-linux-gnu",
    debianPackage: "gcc-aarch64-linux-gnu",
    flags: [],
  },
];

// Other versions emit different instructions. Only these versions reproduce the committed bytes.
const compilerVersion = "12.2.0";
const linkerVersion = "2.40";

const flags = `
  -std=gnu11 -Os -Wall -Wextra -Werror
  -ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns -fno-stack-protector
  -fno-pie -fno-asynchronous-unwind-tables -fno-ident
  -nostdlib -static -no-pie -s
  -Wl,--build-id=none,-z,noexecstack,-z,norelro,-z,noseparate-code
`
  .trim()
  .split(/\s+/);

const check = process.argv[2] === "--check";
if (process.argv.length > (check ? 3 : 2)) {
  console.error("usage: build-native.mjs [--check]");
  process.exit(2);
}

for (const target of targets) {
  const problem = findToolProblem(target);
  if (problem === null) continue;
  console.error(
    `build-native: ${problem}\n` +
      `  The committed launcher is built with ${target.compiler} ${compilerVersion} and GNU ld ${linkerVersion}, as in Debian 12.\n` +
      `  On Debian 12: apt-get install ${target.debianPackage}`,
  );
  process.exit(3);
}

process.exitCode = check ? compareAll() : buildAll();

function buildAll() {
  mkdirSync(binaries, { recursive: true });
  for (const target of targets) {
    const size = build(target, join(binaries, target.file)).length;
    console.log(`built native/bin/${target.file}, ${size} bytes`);
  }
  return 0;
}

function compareAll() {
  const scratch = mkdtempSync(join(tmpdir(), "drover-native-"));
  try {
    const results = targets.map((target) => compare(target, scratch));
    return results.every((isEqual) => isEqual) ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function compare(target, scratch) {
  const built = build(target, join(scratch, target.file));
  const committed = join(binaries, target.file);
  const isEqual = existsSync(committed) && built.equals(readFileSync(committed));
  if (isEqual) console.log(`native/bin/${target.file} matches native/src`);
  else console.error(`native/bin/${target.file} does not match native/src: run \`npm run build:native\``);
  return isEqual;
}

function build(target, output) {
  // Relative paths keep this machine's paths out of the output.
  execFileSync(target.compiler, [...flags, ...target.flags, "-o", output, "main.c"], {
    cwd: sources,
    stdio: "inherit",
  });
  chmodSync(output, 0o755);
  return readFileSync(output);
}

/** Describes the tool that is missing or has the wrong version. Returns null if the target can be reproduced here. */
function findToolProblem({ compiler, machine }) {
  const version = readFirstLine(compiler, ["-dumpfullversion"]);
  if (version === null) return `${compiler} is not installed.`;
  if (version !== compilerVersion) return `${compiler} is version ${version}.`;
  const actualMachine = readFirstLine(compiler, ["-dumpmachine"]);
  if (actualMachine !== machine) return `${compiler} builds for ${actualMachine}, not for ${machine}.`;
  const linker = readFirstLine(compiler, ["-Wl,--version"]);
  if (linker?.endsWith(` ${linkerVersion}`) !== true) return `The linker of ${compiler} is ${linker ?? "missing"}.`;
  return null;
}

function readFirstLine(program, args) {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .split("\n")[0]
      .trim();
  } catch (error) {
    // The tool is missing or cannot print its version. Either way it is not the required one.
    if (error.code === "ENOENT" || typeof error.status === "number") return null;
    throw error;
  }
}
