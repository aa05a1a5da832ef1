/** A model may be cut off in the middle of a tool's input: then the call is answered, not carried out. */
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
