/** Keys as texts with a checksum (BIP 173). */

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const CHECKSUM = 6;

/** The bytes of a text in lower case with this prefix; undefined if it is not one. */
export function bech32Data(text: string, prefix: string): Buffer | undefined {
  if (!text.startsWith(`${prefix}1`)) return undefined;
  const values = Array.from(text.slice(prefix.length + 1), (letter) => ALPHABET.indexOf(letter));
  if (values.length < CHECKSUM || values.includes(-1)) return undefined;
  const letters = [...Buffer.from(prefix)];
  if (remainder([...letters.map((code) => code >> 5), 0, ...letters.map((code) => code & 31), ...values]) !== 1) {
    return undefined;
  }
  const bytes: number[] = [];
  let [bits, count] = [0, 0];
  for (const value of values.slice(0, -CHECKSUM)) {
    bits = ((bits << 5) | value) & 0xfff;
    count += 5;
    if (count >= 8) bytes.push((bits >> (count -= 8)) & 0xff);
  }
  // The rest fills the last letter.
  return count < 5 && (bits & ((1 << count) - 1)) === 0 ? Buffer.from(bytes) : undefined;
}

function remainder(values: readonly number[]): number {
  let sum = 1;
  for (const value of values) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    for (const [at, factor] of GENERATOR.entries()) if (((top >> at) & 1) === 1) sum ^= factor;
  }
  return sum;
}
