import { unreachable } from "../wire/send.ts";

/** A connection that ends in the middle is the coordinator's absence, and no defect. */
export async function* cutIsTold(stream: AsyncIterable<Uint8Array>, url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw error instanceof TypeError ? unreachable(url, error) : error;
  }
}
