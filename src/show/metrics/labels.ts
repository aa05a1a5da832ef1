/** Converts label values to the text after a metric's name. Caches the texts: there are few sets of values, used often. */
export function createLabelTexts(names: readonly string[]): (values: readonly string[]) => string {
  const cache = new Map<string, string>();
  return (values) => {
    if (values.length !== names.length) throw new Error(`labels [${names.join(", ")}] got ${values.length} values`);
    if (values.length === 0) return "";
    const joined = values.join("\u0000");
    let key = cache.get(joined);
    if (key === undefined) cache.set(joined, (key = labelText(values.map((value, index) => [names[index]!, value]))));
    return key;
  };
}

export function labelText(labels: readonly (readonly [name: string, value: string])[]): string {
  const parts = labels.map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
