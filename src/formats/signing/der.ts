/** Distinguished encoding of ASN.1 (ITU-T X.690), as much of it as certificates and requests need. Pure. */

const [INTEGER, BIT_STRING, OCTET_STRING, OID, UTF8, SEQUENCE, SET] = [0x02, 0x03, 0x04, 0x06, 0x0c, 0x30, 0x31];
export { INTEGER, BIT_STRING, OCTET_STRING, SEQUENCE };

/** 10.1: the definite form with the fewest octets. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

export function oid(hex: string): Buffer {
  return der(OID, Buffer.from(hex, 'hex'));
}

export const ECDSA_SHA256: Buffer = der(SEQUENCE, oid('2a8648ce3d040302'));
/** Its parameters are NULL. */
export const RSA_SHA256: Buffer = der(SEQUENCE, oid('2a864886f70d01010b'), Buffer.from([0x05, 0x00]));
/** Object identifiers of the parts of a name. */
export const [COMMON_NAME, ORGANIZATION, UNIT] = ['550403', '55040a', '55040b'] as const;

/** An element as it is: `whole` with its tag and its length. */
interface Element {
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** The elements one after the other, up to the first one that is cut; their tags are not looked at. */
export function elementsIn(bytes: Buffer): readonly Element[] {
  const all: Element[] = [];
  for (let at = 0; at + 2 <= bytes.length;) {
    const first = bytes[at + 1] ?? 0;
    const more = first < 0x80 ? 0 : first & 0x7f;
    if (more > 2 || at + 2 + more > bytes.length) break;
    const from = at + 2 + more;
    const to = from + (more === 0 ? first : bytes.readUIntBE(at + 2, more));
    if (to > bytes.length) break;
    all.push({ whole: bytes.subarray(at, to), content: bytes.subarray(from, to) });
    at = to;
  }
  return all;
}

/** One part of a name. */
export function namePart(id: string, text: string): Buffer {
  return der(SET, der(SEQUENCE, oid(id), der(UTF8, Buffer.from(text))));
}

/** RFC 5280, 4.1.2.5: two digits of the year until 2049. */
export function derTime(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const isLong = date.getUTCFullYear() >= 2050;
  return der(isLong ? 0x18 : 0x17, Buffer.from(isLong ? digits : digits.slice(2)));
}

/** RFC 7468. */
export function pem(title: string, body: Uint8Array): string {
  const lines =
    Buffer.from(body)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${title}-----\n${lines.join('\n')}\n-----END ${title}-----\n`;
}
