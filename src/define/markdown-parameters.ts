/** One bullet of a `## Parameters` section. */
export interface ListedParameter {
  name: string;
  description: string;
  line: number;
}

export interface ListedParameters {
  parameters: ListedParameter[];
  faults: { line: number; problem: string }[];
}

const maxListed = 1000;
const headingPattern = /^ {0,3}##[ \t]+parameters[ \t]*#*[ \t]*$/i;
const bulletPattern = /^[-*+][ \t]+(.*)$/;
const parameterPattern = /^[`*_]{0,2}([A-Za-z_][A-Za-z0-9_.-]*)[`*_]{0,2}[ \t]*(?::|-|–|—)[ \t]*(.*)$/;

/**
 * Reads lines of the form `- NAME: description` under the heading `## Parameters`. A section without bullets is prose.
 * `firstLine` is the line number of `lines[0]`.
 */
export function parseParameters(lines: readonly string[], firstLine: number): ListedParameters {
  const listed: ListedParameters = { parameters: [], faults: [] };
  // The pattern takes quadratic time on a long line of spaces.
  const start = lines.findIndex((line) => line.length < 200 && headingPattern.test(line));
  const names = new Set<string>();
  if (start === -1) return listed;
  for (const [index, text] of lines.slice(start + 1).entries()) {
    if (/^ {0,3}#{1,2}[ \t]/.test(text)) break;
    const item = bulletPattern.exec(text);
    if (!item) continue;
    const line = firstLine + start + 1 + index;
    const [, name, description] = parameterPattern.exec(item[1]!) ?? [];
    if (name === undefined || description === undefined)
      listed.faults.push({
        line,
        problem: `write a parameter as "- NAME: description", not ${JSON.stringify(text.slice(0, 60))}`,
      });
    else if (names.has(name)) listed.faults.push({ line, problem: `the parameter ${name} is listed twice` });
    else listed.parameters.push({ name, description, line });
    if (name !== undefined) names.add(name);
    if (listed.parameters.length + listed.faults.length > maxListed) {
      listed.faults = [{ line, problem: `more than ${maxListed} parameters are listed` }];
      break;
    }
  }
  return listed;
}

/** Every listed parameter is a required string. */
export function toParametersSchema(parameters: readonly ListedParameter[]): Record<string, unknown> {
  return {
    type: "object",
    properties: Object.fromEntries(
      parameters.map(({ name, description }) => [
        name,
        { type: "string", ...(description === "" ? {} : { description }) },
      ]),
    ),
    required: parameters.map(({ name }) => name),
    additionalProperties: false,
  };
}
