/** A certificate authority of its own for tests, and certificates by it. */
import { generate } from 'selfsigned';

export interface TestCertificate {
  readonly key: string;
  readonly cert: string;
  /** The authority that a client must trust, in PEM. */
  readonly ca: string;
}

/** A fresh authority and a server's certificate for these names and 127.0.0.1. */
export async function makeCertificate(names: readonly string[] = ['localhost']): Promise<TestCertificate> {
  const authority = await generate([{ name: 'commonName', value: 'curlew test authority' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const server = await generate([{ name: 'commonName', value: names[0] ?? 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: 'basicConstraints', cA: false },
      { name: 'keyUsage', digitalSignature: true },
      {
        name: 'subjectAltName',
        altNames: [...names.map((value) => ({ type: 2 as const, value })), { type: 7 as const, ip: '127.0.0.1' }],
      },
    ],
  });
  return { key: server.private, cert: server.cert, ca: authority.cert };
}
