type WithoutUndefined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Removes keys whose value is undefined. The model's types distinguish absent from undefined. */
export function omitUndefined<T extends object>(value: T): WithoutUndefined<T> {
  // The filter removes exactly the keys that the type excludes.
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as WithoutUndefined<T>;
}
