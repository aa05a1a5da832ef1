import type { Readable } from "node:stream";

/** A child's pipe as Node makes it: a socket that counts what it has read. */
type Pipe = Readable & { bytesRead?: number };

/**
 * After the exit: ends pipes that someone else still holds open. A pipe is given up after `drainMs` of
 * silence, and silence counts only while its consumer waits for more, so that a slow one loses nothing.
 * Someone who keeps writing is given up after ten times that. Returns how to stop watching.
 */
export function endHeldPipes(
  pipes: readonly Pipe[],
  drainMs: number,
  isStopped: () => boolean,
  onGivenUp: () => void,
): () => void {
  if (pipes.every((pipe) => pipe.readableEnded || pipe.destroyed)) return () => undefined;
  const tick = Math.max(1, Math.ceil(drainMs / 4));
  let seen = countRead(pipes);
  let silentMs = 0;
  let readingMs = 0;
  const timer = setInterval(() => {
    const open = pipes.filter((pipe) => !pipe.readableEnded && !pipe.destroyed);
    // nobody waits longer for a consumer once the command was to be stopped: its end has a deadline
    if (!isStopped() && !open.every(isWaiting)) return;
    const now = countRead(pipes);
    silentMs = now === seen ? silentMs + tick : 0;
    seen = now;
    readingMs += tick;
    if (silentMs < drainMs && readingMs < drainMs * 10) return;
    clearInterval(timer);
    // a clean end: destroying would be an error to those who iterate
    for (const pipe of open) pipe.push(null);
    onGivenUp();
  }, tick);
  return () => clearInterval(timer);
}

function isWaiting(pipe: Pipe): boolean {
  return pipe.readableLength === 0 && (pipe.readableFlowing === true || pipe.listenerCount("readable") > 0);
}

function countRead(pipes: readonly Pipe[]): number {
  return pipes.reduce((sum, pipe) => sum + (pipe.bytesRead ?? 0), 0);
}
