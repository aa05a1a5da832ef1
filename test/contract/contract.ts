import { describe, it } from "vitest";

/** One promise of an interface, checked on a new subject. */
export interface Case<Subject> {
  title: string;
  check(make: () => Promise<Subject>): Promise<void>;
}

/** Every implementation of an interface has to pass the same cases. */
export function describeContract<Subject>(
  name: string,
  cases: readonly Case<Subject>[],
  make: () => Promise<Subject>,
): void {
  describe(name, () => {
    for (const { title, check } of cases) it(title, () => check(make));
  });
}
