/** A promise with its resolve function. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
}

export function defer<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
