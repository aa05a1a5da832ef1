import { describe, expect, test } from "vitest";
import { ordinaryTexts } from "./fixtures/ordinary-texts.ts";
import { tokenShapes } from "./fixtures/token-shapes.ts";
import { listForms } from "./fixtures/forms.ts";
import { createRedactor } from "./redactor.ts";

const redactorWithoutValues = createRedactor({ variables: {} });

describe("exact values", () => {
  const secret = 'pa"ss\\wörd /+%42';
  const redactor = createRedactor({ variables: { DB_PASSWORD: secret, HOME: "/home/alice" } });

  test.each(listForms(secret))("are redacted as %s", (_form, encoded) => {
    expect(redactor.text(`before|${encoded}|after`)).toMatch(/^before\|.{0,2}\[redacted:DB_PASSWORD\].{0,4}\|after$/);
  });

  test("leave no bits in base64 that ends with them", () => {
    for (const value of ["a-secret-of-17-by", "a-secret-of-18-byt", "a-secret-of-19-byte"]) {
      const testRedactor = createRedactor({ variables: {}, values: [{ name: "own", value }] });
      expect(testRedactor.text(`<${btoa(value)}>`)).toBe("<[redacted:own]>");
    }
  });

  test("are marked with the name of the variable, whatever comes before them", () => {
    expect(redactor.text(`password=${secret}`)).toBe("password=[redacted:DB_PASSWORD]");
  });

  test("are redacted in base64 with wrapped lines", () => {
    const long = "k".repeat(30) + "Wy7" + "q9".repeat(40);
    const testRedactor = createRedactor({ variables: {}, values: [{ name: "long", value: long }] });
    for (let before = 0; before < 80; before++) {
      const lines = Buffer.from("x".repeat(before) + long)
        .toString("base64")
        .replace(/.{76}/g, "$&\n");
      const remaining = testRedactor.text(lines).replace("[redacted:long]", "").replaceAll("\n", "");
      expect(remaining.length, lines).toBeLessThan(Math.ceil((before * 4) / 3) + 10);
    }
  });

  test("with several lines are redacted as a whole and by line", () => {
    const lines = ["first-line-of-a-secret", "second-line-of-a-secret", "short"];
    const testRedactor = createRedactor({ variables: { SIGNING_KEY: lines.join("\n") } });
    expect(testRedactor.text(`<${lines.join("\n")}>`)).toBe("<[redacted:SIGNING_KEY]>");
    expect(testRedactor.text(JSON.stringify({ key: lines.join("\n") }))).toBe('{"key":"[redacted:SIGNING_KEY]"}');
    expect(testRedactor.text(`1: ${lines[1]}\n2: short`)).toBe("1: [redacted:SIGNING_KEY]\n2: short");
  });

  test("are not redacted if they are switches, short, numbers, paths or addresses", () => {
    const variables = {
      A_TOKEN: "",
      B_TOKEN: "true",
      C_SECRET: "1",
      D_PASSWORD: "password",
      E_KEY: "/bin/sh",
      F_KEY: "~/.ssh/id_ed25519",
      G_SECRET: "123456",
      H_AUTH: "https://login.example.com/oauth",
      I_TOKEN: "abcde",
    };
    const text = Object.values(variables).join(" ");
    expect(createRedactor({ variables }).text(text)).toBe(text);
  });

  test("come only from variables with sensitive names", () => {
    const testRedactor = createRedactor({ variables: { EDITOR: "emacs-nox", NPM_TOKEN: "emacs-gtk" } });
    expect(testRedactor.text("emacs-nox emacs-gtk")).toBe("emacs-nox [redacted:NPM_TOKEN]");
  });

  test("are copied when the redactor is created", () => {
    const variables: Record<string, string> = { NPM_TOKEN: "first-value" };
    const testRedactor = createRedactor({ variables });
    variables["NPM_TOKEN"] = "second-value";
    expect(testRedactor.text("first-value second-value")).toBe("[redacted:NPM_TOKEN] second-value");
  });

  test("do not hide a token directly after them", () => {
    const testRedactor = createRedactor({ variables: { API_TOKEN: "k8Jd0sLqP2vX" } });
    expect(testRedactor.text(`k8Jd0sLqP2vXghp_${"a1".repeat(20)}`)).toBe("[redacted:API_TOKEN][redacted:github-token]");
  });

  test("do not appear in the mark of a secret after them", () => {
    expect(redactor.text(`${secret}password=hunter22`)).toBe("[redacted:DB_PASSWORD]password=[redacted:password]");
    const testRedactor = createRedactor({ variables: { API_TOKEN: "abc_def_ghi" } });
    expect(testRedactor.text("abc_def_ghipassword=hunter22")).toBe("[redacted:API_TOKEN]password=[redacted:password]");
  });

  test("leave no part of either value if two values overlap", () => {
    const testRedactor = createRedactor({
      variables: {},
      values: [
        { name: "one", value: "abcdefgh" },
        { name: "two", value: "fghijklm" },
      ],
    });
    expect(testRedactor.text("-abcdefghijklm-")).toBe("-[redacted:one]-");
    expect(testRedactor.text("-abcdefghfghijklm-")).toBe("-[redacted:one][redacted:two]-");
  });
});

describe("token shapes", () => {
  test.each(tokenShapes)("are redacted: %s", (_title, text, expected) => {
    expect(redactorWithoutValues.text(text)).toBe(expected);
  });

  test("include an incomplete private key, up to its last line", () => {
    const body = `${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw".repeat(2)}\n${"ggSjAgEAAoIBAQC7VJTUt9Us8cKj".repeat(2)}`;
    expect(redactorWithoutValues.text(`-----BEGIN PRIVATE KEY-----\n${body}\nDone, all is well`)).toBe(
      "-----BEGIN PRIVATE KEY-----[redacted:private-key]\nDone, all is well",
    );
  });
});

test.each(ordinaryTexts.map((text) => [text]))("keeps ordinary text: %s", (text) => {
  expect(redactorWithoutValues.text(text)).toBe(text);
});

test("keeps bytes that are not UTF-8", () => {
  const bytes = Uint8Array.from({ length: 4096 }, (_, index) => (index * 7919) & 0xff);
  expect(redactorWithoutValues.bytes(bytes)).toEqual(bytes);
  const testRedactor = createRedactor({ variables: { API_KEY: "a-secret-value" } });
  const surrounded = Buffer.concat([bytes, Buffer.from("a-secret-value"), bytes]);
  expect(Buffer.from(testRedactor.bytes(surrounded))).toEqual(
    Buffer.concat([bytes, Buffer.from("[redacted:API_KEY]"), bytes]),
  );
});

test("keeps marks intact if a secret spells part of one", () => {
  const testRedactor = createRedactor({ variables: {}, values: [{ name: "odd", value: "redacted" }] });
  const once = testRedactor.text("token=redacted and [redacted:jwt]");
  expect(once).toBe("token=[redacted:odd] and [redacted:jwt]");
  expect(testRedactor.text(once)).toBe(once);
});
