/**
 * Parses the input of a tool call. If the model's answer was cut off, the input is invalid, and the loop returns
 * `fault` to the model as the call's result.
 */
export function parseInput(text: string): { input: unknown; fault?: string } {
  try {
    return { input: JSON.parse(text === "" ? "{}" : text) };
  } catch (error) {
    return {
      input: text,
      fault: `The input is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}
