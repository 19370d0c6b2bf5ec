/** Certificate authorities: Node's own, plus those of a file that the operator names. */
import { open } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Environment } from './proxy.ts';

const FILE_LIMIT = 16 * 1024 * 1024;

/** The text of a file with certificates, without a byte order mark. `FILE_UNUSABLE` if it has none. */
export async function readPem(path: string): Promise<string> {
  const doing = `read the certificate authorities in ${path}`;
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    if (size > FILE_LIMIT) throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: larger than ${FILE_LIMIT} bytes`);
    // OpenSSL skips a certificate after a byte order mark without a word.
    const text = (await file.readFile('latin1')).replace(/^\u00ef\u00bb\u00bf/, '');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  } catch (error) {
    throw fileError(doing, error);
  }
  throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: it contains no certificate`, {
    hint: 'use a file in PEM format',
  });
}

/**
 * Trusted authorities in PEM: undefined means Node's defaults. Adds `caFile`, or else SSL_CERT_FILE, to them, and also
 * NODE_EXTRA_CA_CERTS, which Node would otherwise ignore.
 */
export async function loadRoots(caFile: string | undefined, env: Environment): Promise<readonly string[] | undefined> {
  const named = caFile ?? env['SSL_CERT_FILE'];
  if (named === undefined || named === '') return undefined;
  const extra = env['NODE_EXTRA_CA_CERTS'];
  const files = extra === undefined || extra === '' || extra === named ? [named] : [named, extra];
  return [...rootCertificates, ...(await Promise.all(files.map(readPem)))];
}
