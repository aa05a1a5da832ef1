import type { Question } from "./queries.ts";

/** Returns the questions in the order in which they were answered, newest last. The coordinator lists them as they were asked. */
export function sortAnswered<T extends Pick<Question, "answered_at" | "asked_at">>(questions: readonly T[]): T[] {
  const getTime = ({ answered_at, asked_at }: T): number => Date.parse(answered_at ?? asked_at);
  return questions.toSorted((first, second) => getTime(first) - getTime(second));
}
