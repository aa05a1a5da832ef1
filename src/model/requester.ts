/** On whose behalf some work is done. Aborting `signal` cancels the work. */
export interface Requester {
  subject: string;
  signal?: AbortSignal | undefined;
}
