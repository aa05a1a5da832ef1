/** In whose name something is asked for. It is given up when `signal` is aborted: nobody waits for it any more. */
export interface Requester {
  caller: string;
  signal?: AbortSignal | undefined;
}
