/**
 * SHA-256 and HMAC in plain JavaScript. Loading node:crypto costs a cold `exec` 2.9 ms, while hashing its two audit rows
 * here takes well under 0.1 ms. A process that hashes more is long-lived and switches to node:crypto, which is faster.
 */

/** Computes the HMAC of a message with a fixed key. */
export type ComputeMac = (message: Uint8Array) => Uint8Array;

/** After this many hashes, loading node:crypto pays off. */
const maxPlainHashes = 32;
let hashCount = 0;

/** Returns null while hashing in JavaScript is cheaper than loading the module. */
function loadCryptoIfNeeded(): typeof import("node:crypto") | null {
  hashCount += 1;
  return hashCount > maxPlainHashes ? process.getBuiltinModule("node:crypto") : null;
}

export function sha256(message: Uint8Array): Uint8Array {
  return (
    loadCryptoIfNeeded()?.createHash("sha256").update(message).digest() ??
    finish(Int32Array.from(initialState), message, 0)
  );
}

export function createMac(key: Uint8Array): ComputeMac {
  let plainMac: ComputeMac | null = null;
  return (message) =>
    loadCryptoIfNeeded()?.createHmac("sha256", key).update(message).digest() ??
    (plainMac ??= createPlainMac(key))(message);
}

function createPlainMac(key: Uint8Array): ComputeMac {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? finish(Int32Array.from(initialState), key, 0) : key);
  const inner = hashFirstBlock(block.map((byte) => byte ^ 0x36));
  const outer = hashFirstBlock(block.map((byte) => byte ^ 0x5c));
  return (message) => finish(outer.slice(), finish(inner.slice(), message, 64), 64);
}

function hashFirstBlock(block: Uint8Array): Int32Array {
  const state = Int32Array.from(initialState);
  compress(state, new DataView(block.buffer), 0, new Int32Array(64));
  return state;
}

/** Hashes `message` into `state`, which has already absorbed `absorbedBytes` bytes. */
function finish(state: Int32Array, message: Uint8Array, absorbedBytes: number): Uint8Array {
  const schedule = new Int32Array(64);
  const wholeLength = message.length - (message.length % 64);
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  for (let offset = 0; offset < wholeLength; offset += 64) compress(state, view, offset, schedule);
  const remainder = message.length - wholeLength;
  const lastBlocks = new Uint8Array(remainder < 56 ? 64 : 128);
  lastBlocks.set(message.subarray(wholeLength));
  lastBlocks[remainder] = 0x80;
  const tail = new DataView(lastBlocks.buffer);
  const length = absorbedBytes + message.length;
  tail.setUint32(lastBlocks.length - 8, Math.floor(length / 0x20000000));
  tail.setUint32(lastBlocks.length - 4, (length << 3) >>> 0);
  for (let offset = 0; offset < lastBlocks.length; offset += 64) compress(state, tail, offset, schedule);
  const digest = new Uint8Array(32);
  const digestView = new DataView(digest.buffer);
  state.forEach((word, index) => digestView.setInt32(index * 4, word));
  return digest;
}

/**
 * The compression function of FIPS 180-4, unrolled into two long functions. In a cold process they run in the
 * interpreter, where a call costs more than a rotation. Their length also delays V8's optimizer: within one `exec` it
 * would spend 15 million instructions, a twelfth of the total, on code that is no longer needed.
 */
function compress(state: Int32Array, view: DataView, offset: number, w: Int32Array): void {
  expand(view, offset, w);
  mix(state, w);
}

/** Expands a block into the message schedule. All indexes are in range, here and in `mix`. */
function expand(view: DataView, offset: number, w: Int32Array): void {
  for (let t = 0; t < 16; t += 1) w[t] = view.getInt32(offset + t * 4);
  for (let t = 16; t < 64; t += 2) {
    let x = w[t - 15]!;
    let y = w[t - 2]!;
    x = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    y = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[t] = w[t - 16]! + w[t - 7]! + x + y;
    x = w[t - 14]!;
    y = w[t - 1]!;
    x = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    y = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[t + 1] = w[t - 15]! + w[t - 6]! + x + y;
  }
}

/** The 64 rounds, eight per iteration: after eight rounds each variable has its original role again. */
function mix(state: Int32Array, w: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  let e = state[4]!;
  let f = state[5]!;
  let g = state[6]!;
  let h = state[7]!;
  let x = 0;
  for (let t = 0; t < 64; t += 8) {
    x = h + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7)));
    x = (x + (g ^ (e & (f ^ g))) + roundConstants[t]! + w[t]!) | 0;
    d = (d + x) | 0;
    x += ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    h = (x + ((a & b) | (c & (a | b)))) | 0;
    x = g + (((d >>> 6) | (d << 26)) ^ ((d >>> 11) | (d << 21)) ^ ((d >>> 25) | (d << 7)));
    x = (x + (f ^ (d & (e ^ f))) + roundConstants[t + 1]! + w[t + 1]!) | 0;
    c = (c + x) | 0;
    x += ((h >>> 2) | (h << 30)) ^ ((h >>> 13) | (h << 19)) ^ ((h >>> 22) | (h << 10));
    g = (x + ((h & a) | (b & (h | a)))) | 0;
    x = f + (((c >>> 6) | (c << 26)) ^ ((c >>> 11) | (c << 21)) ^ ((c >>> 25) | (c << 7)));
    x = (x + (e ^ (c & (d ^ e))) + roundConstants[t + 2]! + w[t + 2]!) | 0;
    b = (b + x) | 0;
    x += ((g >>> 2) | (g << 30)) ^ ((g >>> 13) | (g << 19)) ^ ((g >>> 22) | (g << 10));
    f = (x + ((g & h) | (a & (g | h)))) | 0;
    x = e + (((b >>> 6) | (b << 26)) ^ ((b >>> 11) | (b << 21)) ^ ((b >>> 25) | (b << 7)));
    x = (x + (d ^ (b & (c ^ d))) + roundConstants[t + 3]! + w[t + 3]!) | 0;
    a = (a + x) | 0;
    x += ((f >>> 2) | (f << 30)) ^ ((f >>> 13) | (f << 19)) ^ ((f >>> 22) | (f << 10));
    e = (x + ((f & g) | (h & (f | g)))) | 0;
    x = d + (((a >>> 6) | (a << 26)) ^ ((a >>> 11) | (a << 21)) ^ ((a >>> 25) | (a << 7)));
    x = (x + (c ^ (a & (b ^ c))) + roundConstants[t + 4]! + w[t + 4]!) | 0;
    h = (h + x) | 0;
    x += ((e >>> 2) | (e << 30)) ^ ((e >>> 13) | (e << 19)) ^ ((e >>> 22) | (e << 10));
    d = (x + ((e & f) | (g & (e | f)))) | 0;
    x = c + (((h >>> 6) | (h << 26)) ^ ((h >>> 11) | (h << 21)) ^ ((h >>> 25) | (h << 7)));
    x = (x + (b ^ (h & (a ^ b))) + roundConstants[t + 5]! + w[t + 5]!) | 0;
    g = (g + x) | 0;
    x += ((d >>> 2) | (d << 30)) ^ ((d >>> 13) | (d << 19)) ^ ((d >>> 22) | (d << 10));
    c = (x + ((d & e) | (f & (d | e)))) | 0;
    x = b + (((g >>> 6) | (g << 26)) ^ ((g >>> 11) | (g << 21)) ^ ((g >>> 25) | (g << 7)));
    x = (x + (a ^ (g & (h ^ a))) + roundConstants[t + 6]! + w[t + 6]!) | 0;
    f = (f + x) | 0;
    x += ((c >>> 2) | (c << 30)) ^ ((c >>> 13) | (c << 19)) ^ ((c >>> 22) | (c << 10));
    b = (x + ((c & d) | (e & (c | d)))) | 0;
    x = a + (((f >>> 6) | (f << 26)) ^ ((f >>> 11) | (f << 21)) ^ ((f >>> 25) | (f << 7)));
    x = (x + (h ^ (f & (g ^ h))) + roundConstants[t + 7]! + w[t + 7]!) | 0;
    e = (e + x) | 0;
    x += ((b >>> 2) | (b << 30)) ^ ((b >>> 13) | (b << 19)) ^ ((b >>> 22) | (b << 10));
    a = (x + ((b & c) | (d & (b | c)))) | 0;
  }
  state[0]! += a;
  state[1]! += b;
  state[2]! += c;
  state[3]! += d;
  state[4]! += e;
  state[5]! += f;
  state[6]! += g;
  state[7]! += h;
}

const initialState = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

const roundConstants = Int32Array.from([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2,
]);
