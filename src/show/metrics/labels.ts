/** Returns a function that formats label values as the text after a metric's name. It caches the texts, because the same few sets of values recur. */
export function createLabelFormatter(names: readonly string[]): (values: readonly string[]) => string {
  const cache = new Map<string, string>();
  return (values) => {
    if (values.length !== names.length) throw new Error(`labels [${names.join(", ")}] got ${values.length} values`);
    if (values.length === 0) return "";
    const joined = values.join("\u0000");
    let text = cache.get(joined);
    if (text === undefined)
      cache.set(joined, (text = formatLabels(values.map((value, index) => [names[index]!, value]))));
    return text;
  };
}

export function formatLabels(labels: readonly (readonly [name: string, value: string])[]): string {
  const parts = labels.map(
    ([name, value]) => `${name}="${value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
