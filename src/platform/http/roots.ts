/** Certificate authorities: Node's own, plus those of a file that the operator names. */
import { open } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Environment } from './proxy.ts';

const FILE_LIMIT = 16 * 1024 * 1024;

/**
 * The text of a file with certificates, without a byte order mark; `variable` is what names it in the environment, if anything does.
 * `FILE_UNUSABLE` if it has none.
 */
export async function readPem(path: string, variable?: string): Promise<string> {
  const doing = `read the certificate authorities in ${path}${variable === undefined ? '' : `, which ${variable} names`}`;
  const hint =
    variable === undefined ? 'use a file in PEM format' : `set ${variable} to a file in PEM format, or unset it`;
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    if (size > FILE_LIMIT) throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: larger than ${FILE_LIMIT} bytes`);
    // OpenSSL skips a certificate after a byte order mark without a word.
    const text = (await file.readFile('latin1')).replace(/^\u00ef\u00bb\u00bf/, '');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  } catch (error) {
    const problem = fileError(doing, error);
    throw problem.hint === undefined ? problem.with({ hint }) : problem;
  }
  throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: it contains no certificate`, { hint });
}

/**
 * Trusted authorities in PEM: undefined means Node's defaults. Adds `caFile`, or else SSL_CERT_FILE, to them, and also
 * NODE_EXTRA_CA_CERTS, which Node would otherwise ignore.
 */
export async function loadRoots(caFile: string | undefined, env: Environment): Promise<readonly string[] | undefined> {
  const variable = caFile === undefined ? 'SSL_CERT_FILE' : undefined;
  const named = caFile ?? env['SSL_CERT_FILE'];
  if (named === undefined || named === '') return undefined;
  const extra = env['NODE_EXTRA_CA_CERTS'];
  const texts = [readPem(named, variable)];
  if (extra !== undefined && extra !== '' && extra !== named) texts.push(readPem(extra, 'NODE_EXTRA_CA_CERTS'));
  return [...rootCertificates, ...(await Promise.all(texts))];
}
