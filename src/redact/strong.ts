/**
 * Is what stands behind a telling name a secret, or ordinary text? `token: string`, `password=getPassword`,
 * `secret: ${{ secrets.X }}`, `tokens: 123` are ordinary. Without the value being known, only what no
 * identifier, number, placeholder, path or address looks like is taken: six characters or more, with a digit
 * or a sign among them, not only digits. What is ordinary is so by its beginning, before any digit or sign:
 * cut anywhere, it stays ordinary, so that redacting twice is redacting once.
 */
export function isStrong(value: string): boolean {
  if (value.length < 6 || !/[0-9!@#$%^*+?]/.test(value) || /^[\d.,:_-]+$/.test(value)) return false;
  return !ordinary.test(value);
}

/** Anything that says "put a value here". */
export function isPlaceholder(value: string): boolean {
  return placeholder.test(value);
}

const placeholder = /^(?:\$\{|\$\(|\$[A-Za-z_]|\{\{|%\(|%[A-Z_]{4}|<|\*{3}|x{4}|X{4}|\.{3}|%s|%v|\{[a-z_]*\})/;
const ordinary = new RegExp(
  [
    placeholder.source,
    String.raw`^(?:\.{0,2}|~)/[a-z_.-]*/`,
    String.raw`^[a-z]+://`,
    String.raw`^(?:process|os|env|self|this|config|settings|secrets|options|params|args|props|request|req|ctx|vars?)\.`,
    String.raw`^(?:Big)?(?:Ui|I|Floa)n?t\d+`,
    String.raw`^0x[0-9a-fA-F]{1,16}$`,
    String.raw`^[!@#$%^*+?=]+$`,
  ].join("|"),
);

/**
 * The word by which a name says that a secret follows. It must end the name: `token_count` tells of none.
 * Marks carry this word alone, for what stands before it may belong to another secret.
 */
export function tellingWord(name: string): string | undefined {
  return telling.exec(name)?.[0].replace(/^[_-]/, "").toLowerCase();
}

const telling =
  /(?:authorization|passw(?:or)?d|passphrase|pwd|[_-]pass|secret|token|credentials?|_auth|(?:api|access|secret|private|account|signing|encryption|auth|master)[_.-]?key)$/i;
