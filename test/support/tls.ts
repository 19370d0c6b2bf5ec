/** A certificate authority of its own for tests, certificates by it, and a port that speaks with and without TLS. */
import { createPrivateKey } from 'node:crypto';
import { connect, createServer, type AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

export interface TestCertificate {
  readonly key: string;
  readonly cert: string;
  /** The authority that a client must trust, in PEM. */
  readonly ca: string;
}

/** A fresh authority and a server's certificate for these names and 127.0.0.1, good for this time or a year from now. */
export async function makeCertificate(
  names: readonly string[] = ['localhost'],
  time: { readonly notBeforeDate?: Date; readonly notAfterDate?: Date } = {},
): Promise<TestCertificate> {
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
    ...time,
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

let usual: Promise<TestCertificate> | undefined;

/** The certificate of servers in whose tests any will do: making one takes longer than most of these tests. */
export async function usualCertificate(): Promise<TestCertificate> {
  usual ??= makeCertificate();
  return usual;
}

/** Leads clients that begin with a TLS handshake to one port, all others to the other. Servers in Go answer like this. */
export async function startBoth(
  tlsPort: number,
  plainPort: number,
): Promise<AsyncDisposable & { readonly host: string }> {
  const server = createServer((client) => {
    client.on('error', () => undefined);
    client.once('data', (first) => {
      const target = connect(Buffer.from(first)[0] === 0x16 ? tlsPort : plainPort, '127.0.0.1');
      target.on('error', () => client.destroy());
      client.on('close', () => target.destroy());
      target.write(first);
      client.pipe(target).pipe(client);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    host: `localhost:${port}`,
    [Symbol.asyncDispose]: async () => {
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Two certificates with their keys, and files: a.crt with its a.key, that key encrypted as e.key, the other's as b.key. */
export async function keyPairs() {
  const [one, two] = await Promise.all([generate([], { keySize: 2048 }), generate([], { keySize: 2048 })]);
  const secret = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const;
  const encrypted = createPrivateKey(one.private).export(secret);
  const files = { 'a.crt': one.cert, 'a.key': one.private, 'b.key': two.private, 'e.key': encrypted };
  return { one, two, files };
}
