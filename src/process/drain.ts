import type { Readable } from "node:stream";

/** A child's pipe as Node makes it: a socket that counts what it has read. */
type Pipe = Readable & { bytesRead?: number };

/**
 * After the exit: ends pipes that someone else still holds open. A pipe is given up after `drainMs` of
 * silence, and silence counts only while its consumer waits for more, so that a slow one loses nothing.
 * Someone who keeps writing is given up after ten times that, or when more has come than the command can
 * have left in the pipe. Returns how to stop watching.
 */
export function endHeldPipes(
  pipes: readonly Pipe[],
  drainMs: number,
  isStopped: () => boolean,
  onGivenUp: () => void,
): () => void {
  if (pipes.every((pipe) => pipe.readableEnded || pipe.destroyed)) return () => undefined;
  const tick = Math.max(1, Math.ceil(drainMs / 4));
  const atExit = countRead(pipes);
  let seen = atExit;
  let silentMs = 0;
  let readingMs = 0;
  const timer = setInterval(() => {
    const open = pipes.filter((pipe) => !pipe.readableEnded && !pipe.destroyed);
    // nobody waits longer for a consumer once the command was to be stopped: its end has a deadline
    const now = countRead(pipes);
    const isStrangers = now - atExit > mostInPipes;
    if (!isStopped() && !isStrangers && !open.every(isWaiting)) return;
    silentMs = now === seen ? silentMs + tick : 0;
    seen = now;
    readingMs += tick;
    if (silentMs < drainMs && readingMs < drainMs * 10 && !isStrangers) return;
    clearInterval(timer);
    // a clean end: destroying would be an error to those who iterate
    for (const pipe of open) pipe.push(null);
    onGivenUp();
  }, tick);
  return () => clearInterval(timer);
}

/** Far above what kernels let a writer leave behind: 208 KB by default. */
const mostInPipes = 8 << 20;

function isWaiting(pipe: Pipe): boolean {
  return pipe.readableLength === 0 && (pipe.readableFlowing === true || pipe.listenerCount("readable") > 0);
}

function countRead(pipes: readonly Pipe[]): number {
  return pipes.reduce((sum, pipe) => sum + (pipe.bytesRead ?? 0), 0);
}
