/**
 * Is what stands behind a telling name a secret, or ordinary text? `token: string`, `password=getPassword`,
 * `secret: ${{ secrets.X }}`, `tokens: 123` are ordinary. Without the value being known, only what no
 * identifier, number, placeholder, path or address looks like is taken: six characters or more, with a digit
 * or a sign among them, not only digits.
 */
export function isStrong(value: string): boolean {
  if (value.length < 6 || !/[0-9!@#$%^*+~?]/.test(value) || /^[\d.,:_-]+$/.test(value)) return false;
  return !ordinary.test(value);
}

/** Anything that says "put a value here". */
export function isPlaceholder(value: string): boolean {
  return placeholder.test(value);
}

const placeholder = /^(?:\$\{|\$\(|\$[A-Za-z_]|\{\{|%\(|%[A-Za-z_]+%|<|\*{3}|x{4}|X{4}|\.{3}|%s|%v|\{[a-z_]*\})/;
const ordinary = new RegExp(
  [
    placeholder.source,
    String.raw`^(?:\.{0,2}|~)/[a-z_.-]*/`,
    String.raw`^[A-Za-z]:\\`,
    String.raw`^[a-z][a-z0-9+.-]*://`,
    String.raw`^(?:process|os|env|self|this|config|settings|secrets|options|params|args|props|request|req|ctx|vars?)\.`,
    String.raw`^(?:Big)?(?:Ui|I|Floa)n?t\d+`,
    String.raw`^[!@#$%^*+~?=]+$`,
  ].join("|"),
);

/** Does a name say that a secret follows? The end of it decides: `token_count` tells of none. */
export function isTelling(name: string): boolean {
  return telling.test(name);
}

const telling =
  /(?:passw(?:or)?d|passphrase|pwd|[_-]pass|secret|token|credentials?|_auth|(?:api|access|secret|private|account|signing|encryption|auth|master)[_.-]?key)$/i;
