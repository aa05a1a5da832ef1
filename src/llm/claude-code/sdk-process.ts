import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { RunningProcess } from "../../model/process.ts";
import type { ProviderHost } from "../definition.ts";
import type { SpawnRequest } from "./sdk.ts";

/**
 * Runs the SDK's program as a recorded process of the run. The SDK expects a process immediately, but Drover starts it
 * only after recording the start, so the pipes buffer until then.
 */
export class SdkProcess extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  killed = false;
  exitCode: number | null = null;
  signalCode: string | null = null;
  /** Resolves when the process and its children have exited. Never rejects. */
  readonly ended: Promise<void>;
  readonly #running: Promise<RunningProcess>;

  constructor(
    { command, args, cwd, env }: SpawnRequest,
    start: ProviderHost["start"],
    onStderr?: (chunk: Uint8Array) => void,
  ) {
    super();
    const environment = Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    this.#running = start({
      executable: command,
      arguments: args,
      environment,
      ...(cwd === undefined ? {} : { workingDirectory: cwd }),
    });
    this.ended = this.#connect(onStderr).catch((error: unknown) => {
      this.stdout.end();
      this.emit("error", error);
    });
  }

  kill(): boolean {
    if (this.killed) return false;
    this.killed = true;
    // The "error" event has already reported a process that could not be started.
    void this.#running.then((running) => running.kill("shutdown")).catch(() => undefined);
    return true;
  }

  async #connect(onStderr: ((chunk: Uint8Array) => void) | undefined): Promise<void> {
    const running = await this.#running;
    const { stdin, stdout, stderr, result } = running;
    // The "exit" event reports that the program is gone.
    stdin?.on("error", () => this.stdin.destroy());
    if (stdin) this.stdin.pipe(stdin);
    if (onStderr) stderr?.on("data", onStderr);
    else stderr?.resume();
    if (stdout) stdout.pipe(this.stdout);
    else this.stdout.end();
    const { exitCode, signal, error } = await result;
    this.exitCode = exitCode;
    this.signalCode = signal;
    if (exitCode === null && signal === null && error) this.emit("error", new Error(error.message));
    else this.emit("exit", exitCode, signal);
  }
}
