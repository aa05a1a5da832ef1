type WithoutUndefined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without the keys that are undefined: to the model, absent and undefined are not the same. */
export function omitUndefined<T extends object>(value: T): WithoutUndefined<T> {
  // exactly the keys whose value is undefined are gone
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as WithoutUndefined<T>;
}
