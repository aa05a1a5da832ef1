/** On whose behalf some work is done. Aborting `signal` cancels the work. */
export interface Requester {
  caller: string;
  signal?: AbortSignal | undefined;
}
