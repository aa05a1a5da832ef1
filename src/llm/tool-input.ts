/** Parses a tool's input. If the model was cut off in the middle of it, the call is answered with the fault instead of made. */
export function readInput(text: string): { input: unknown; fault?: string } {
  try {
    return { input: JSON.parse(text === "" ? "{}" : text) };
  } catch (error) {
    return {
      input: text,
      fault: `The input is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}
