import type { Readable } from "node:stream";

/** A child's pipe. Node creates it as a socket, which counts the bytes it has read. */
type Pipe = Readable & { bytesRead?: number };

/**
 * Ends pipes that another process still holds open after the command's exit. A pipe ends after `drainMs` of silence,
 * counted only while its consumer waits for data, so that a slow consumer loses nothing. If a process keeps writing, the
 * pipe ends after ten times as long, or after more data than the command can have left in it. Returns a function that
 * stops watching.
 */
export function endOpenPipes(
  pipes: readonly Pipe[],
  drainMs: number,
  isStopped: () => boolean,
  onGiveUp: () => void,
): () => void {
  if (pipes.every((pipe) => pipe.readableEnded || pipe.destroyed)) return () => undefined;
  const tickMs = Math.max(1, Math.ceil(drainMs / 4));
  const bytesAtExit = countRead(pipes);
  let lastBytesRead = bytesAtExit;
  let silentMs = 0;
  let readingMs = 0;
  const timer = setInterval(() => {
    const open = pipes.filter((pipe) => !pipe.readableEnded && !pipe.destroyed);
    const bytesRead = countRead(pipes);
    // More than the command can have left: another process writes to the pipe.
    const hasForeignWriter = bytesRead - bytesAtExit > maxBufferedBytes;
    // A stopped command has a deadline, so do not wait for a slow consumer.
    if (!isStopped() && !hasForeignWriter && !open.every(isWaiting)) return;
    silentMs = bytesRead === lastBytesRead ? silentMs + tickMs : 0;
    lastBytesRead = bytesRead;
    readingMs += tickMs;
    if (silentMs < drainMs && readingMs < drainMs * 10 && !hasForeignWriter) return;
    clearInterval(timer);
    // End the stream cleanly: destroying it would be an error for iterators.
    for (const pipe of open) pipe.push(null);
    onGiveUp();
  }, tickMs);
  return () => clearInterval(timer);
}

/** Far more than a pipe or socket can buffer, which is 208 KB by default. */
const maxBufferedBytes = 8 << 20;

function isWaiting(pipe: Pipe): boolean {
  return pipe.readableLength === 0 && (pipe.readableFlowing === true || pipe.listenerCount("readable") > 0);
}

function countRead(pipes: readonly Pipe[]): number {
  return pipes.reduce((sum, pipe) => sum + (pipe.bytesRead ?? 0), 0);
}
