import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { conceal } from "./conceal.ts";
import { listForms } from "./fixtures/forms.ts";
import { createRedactor } from "./redactor.ts";

const alphabets = [
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
  "abcdef0123456789",
  "aB3/+=-_.",
  'xY7"\\/ %&é!\n\t<>',
];

const canaries = Array.from({ length: 200 }, (_, index) => {
  const alphabet = Array.from(alphabets[index % alphabets.length]!);
  const middle = Array.from(randomBytes(8 + (index % 50)), (byte) => alphabet[byte % alphabet.length]).join("");
  return `c${index}${middle}z`;
});
const redactor = createRedactor({
  variables: Object.fromEntries(canaries.map((value, index) => [`CANARY_${index}_TOKEN`, value])),
});

test("redacts 200 canaries in every encoding and across chunk boundaries", () => {
  const leaks: string[] = [];
  for (const [canaryIndex, canary] of canaries.entries()) {
    const forms = listForms(canary);
    for (const [index, [form, written]] of forms.entries()) {
      const text = `line before\nx=${written} and after\n`;
      const size = (canaryIndex + index) % 2 === 0 ? 5 : 16 + (written.length % 23);
      for (const out of [redactor.text(text), redactInChunks(text, size)]) {
        if (containsCanary(out, canary, forms)) leaks.push(`${form}: ${JSON.stringify(canary)} in ${out}`);
      }
    }
  }
  expect(leaks).toEqual([]);
});

test("conceals 200 canaries in parameters, and redacts them in what the run writes", () => {
  const plain = createRedactor({ variables: {} });
  const parameters = Object.fromEntries(canaries.map((value, index) => [`p${index}`, [{ value }]]));
  const schema = { additionalProperties: { items: { properties: { value: { writeOnly: true } } } } };
  const concealed = conceal(schema, { parameters, prompt: null }, plain)!;
  expect(
    canaries.filter((canary) => containsCanary(JSON.stringify(concealed.parameters), canary, listForms(canary))),
  ).toEqual([]);
  const runRedactor = createRedactor({ variables: {}, values: concealed.secrets });
  const leaks = canaries.flatMap((canary) => {
    const forms = listForms(canary);
    return forms.filter(([, written]) =>
      containsCanary(runRedactor.text(`line before\nx=${written} and after\n`), canary, forms),
    );
  });
  expect(leaks).toEqual([]);
});

function redactInChunks(text: string, size: number): string {
  const bytes = Buffer.from(text);
  const stream = redactor.stream();
  const out: Uint8Array[] = [];
  for (let offset = 0; offset < bytes.length; offset += size)
    out.push(stream.push(bytes.subarray(offset, offset + size)));
  out.push(stream.end());
  return Buffer.concat(out).toString();
}

/** Checks every encoding, and decodes base64 at every alignment. */
function containsCanary(text: string, canary: string, forms: readonly [string, string][]): boolean {
  if (forms.some(([, written]) => text.includes(written))) return true;
  return (text.match(/[A-Za-z0-9+/_-]{8,}/g) ?? []).some((run) =>
    [0, 1, 2, 3].some((skipped) => Buffer.from(run.slice(skipped), "base64").includes(canary)),
  );
}
