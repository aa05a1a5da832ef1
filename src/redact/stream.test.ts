import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { listForms } from "./fixtures/forms.ts";
import { ordinaryTexts } from "./fixtures/ordinary-texts.ts";
import { tokenShapes } from "./fixtures/token-shapes.ts";
import { createRedactor } from "./redactor.ts";

const secrets = [
  "k8Jd0sLqP2vX",
  'q"u\\o/te+ü d%41',
  "line-one-of-the-secret\nline-two-of-the-secret\nend",
  "aaaaaaaaaa",
  "ababab",
];
const redactor = createRedactor({
  variables: {},
  values: secrets.map((value, index) => ({ name: `secret-${index}`, value })),
});

const secretSamples = secrets.flatMap((secret) => listForms(secret).map(([, written]) => written));
const samples = [...secretSamples, ...tokenShapes.map(([, text]) => text), ...ordinaryTexts];
const sample = fc.oneof(
  fc.constantFrom(...samples),
  fc.constantFrom(...samples).chain((text) => fc.nat(text.length).map((end) => text.slice(0, end))),
  fc.constantFrom(...samples).chain((text) => fc.nat(text.length).map((start) => text.slice(start))),
  fc.constantFrom(
    "[redacted:x]",
    "[redacted:",
    "[",
    "password=",
    '"token": "',
    "://a:",
    "@",
    " ",
    "\n",
    "\\n",
    "-----",
    "=",
  ),
  fc.string({ maxLength: 12 }),
);
const wholeText = fc.array(sample, { maxLength: 12 }).map((parts) => Buffer.from(parts.join("")));
const anyBytes = fc.oneof(
  { weight: 9, arbitrary: wholeText },
  { weight: 1, arbitrary: fc.uint8Array().map((raw) => Buffer.from(raw)) },
);
const chunkSizes = fc.array(fc.nat(400), { maxLength: 40 });

describe("a stream", () => {
  test("gives the same output in chunks of any size as for the whole text", () => {
    fc.assert(
      fc.property(anyBytes, chunkSizes, (input, sizes) => {
        expect(redactInChunks(input, sizes)).toBe(toLatin1(redactor.bytes(input)));
      }),
      { numRuns: 1500 },
    );
  });

  test("gives the same output byte by byte as for the whole text", () => {
    fc.assert(
      fc.property(anyBytes, (input) => {
        expect(
          redactInChunks(
            input,
            Array.from(input, () => 1),
          ),
        ).toBe(toLatin1(redactor.bytes(input)));
      }),
      { numRuns: 150 },
    );
  });

  test("redacts long text with secrets across chunk boundaries", () => {
    const filler = Buffer.from("an ordinary line of output, number 42\n".repeat(3000));
    fc.assert(
      fc.property(
        wholeText,
        fc.array(fc.integer({ min: 1, max: 90_000 }), { maxLength: 12 }),
        fc.nat(70_000),
        (text, sizes, offset) => {
          const input = Buffer.concat([filler.subarray(0, offset), text, filler.subarray(offset), text]);
          expect(redactInChunks(input, sizes) === toLatin1(redactor.bytes(input))).toBe(true);
        },
      ),
      { numRuns: 20 },
    );
  });

  test("finds a secret that spans two blocks of the fast search", () => {
    const filler = Buffer.alloc(70_000, "some ordinary words. ");
    for (let offset = 65_536 - 14; offset <= 65_536; offset++) {
      const input = Buffer.concat([filler.subarray(0, offset), Buffer.from(secrets[0]!), filler]);
      expect(toLatin1(redactor.bytes(input)), `at ${offset}`).not.toContain(secrets[0]);
    }
  });

  test("emits ordinary lines and prompts at once", () => {
    for (const text of [
      "first line\n",
      "Password: ",
      "token=",
      "50 %\r",
      "http://host",
      "-----BEGIN PRIVATE KEY-----",
    ]) {
      expect(toLatin1(redactor.stream().push(Buffer.from(text)))).toBe(text);
    }
  });

  test("holds back only bytes that may become a secret", () => {
    const stream = redactor.stream();
    expect(toLatin1(stream.push(Buffer.from("value: k8Jd0s")))).toBe("value: ");
    expect(toLatin1(stream.push(Buffer.from("LqP2vX!")))).toBe("[redacted:secret-0]!");
    expect(toLatin1(stream.push(Buffer.from("value: k8Jd0s")))).toBe("value: ");
    expect(toLatin1(stream.end())).toBe("k8Jd0s");
  });

  test("holds back a bounded amount of an endless token", () => {
    const stream = redactor.stream();
    let heldBytes = 0;
    for (let i = 0; i < 200; i++) {
      const chunk = Buffer.from((i === 0 ? "ghp_" : "") + "a1".repeat(512));
      heldBytes += chunk.length - stream.push(chunk).length;
    }
    expect(heldBytes).toBeLessThan(8192);
  });
});

test("changes nothing when text is redacted twice", () => {
  fc.assert(
    fc.property(anyBytes, (input) => {
      const once = redactor.bytes(input);
      expect(toLatin1(redactor.bytes(once))).toBe(toLatin1(once));
    }),
    { numRuns: 1500 },
  );
});

function redactInChunks(input: Buffer, sizes: readonly number[]): string {
  const stream = redactor.stream();
  const out: Uint8Array[] = [];
  let offset = 0;
  for (const size of sizes) {
    out.push(stream.push(input.subarray(offset, offset + size)));
    offset += size;
  }
  out.push(stream.push(input.subarray(offset)), stream.end());
  return toLatin1(Buffer.concat(out));
}

function toLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}
