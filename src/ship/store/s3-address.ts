/** Addresses and connection settings of stores in S3. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';
import type { Environment } from '../../platform/http/proxy.ts';

/** Connection settings. The AWS SDK finds missing ones: environment variables, then profile. */
export interface S3Options {
  /** Address of a server that is not AWS. */
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly profile?: string | undefined;
  /** Send the bucket in the path instead of the host name; default true if an endpoint is given. */
  readonly pathStyle?: boolean | undefined;
  /** Trusted certificate authorities, in PEM; Node's default if absent. */
  readonly ca?: readonly string[] | undefined;
  /** Attempts per request; default 6. */
  readonly attempts?: number | undefined;
  /** For HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in upper or lower case; no proxies if absent. */
  readonly env?: Environment | undefined;
  /** Milliseconds without a byte before a response times out; default 60,000. */
  readonly idleMs?: number | undefined;
}

export interface S3Place {
  readonly bucket: string;
  /** Empty, or with a trailing slash. */
  readonly prefix: string;
  /** `s3://bucket/prefix`, without a trailing slash. */
  readonly address: string;
}

/** Parses `s3://bucket/prefix`. Anything else in an address, such as credentials, is `USAGE`. */
export function parseS3Address(text: string): S3Place {
  const bad = (what: string): CurlewError =>
    new CurlewError('USAGE', `the address of the store ${what}`, { hint: 'write it as s3://bucket/prefix' });
  const rest = text.slice('s3://'.length);
  if (/[@?#]/.test(rest)) throw bad('contains more than a bucket and a prefix');
  const slash = rest.indexOf('/');
  const bucket = slash === -1 ? rest : rest.slice(0, slash);
  const path = slash === -1 ? '' : rest.slice(slash + 1).replace(/\/+$/, '');
  if (!/^[a-z0-9][a-z0-9._-]{1,253}[a-z0-9]$/i.test(bucket)) throw bad('does not contain a valid bucket name');
  const problem = path === '' ? undefined : pathProblem(path);
  if (problem !== undefined) throw bad(`has a prefix that ${problem}`);
  return { bucket, prefix: path === '' ? '' : `${path}/`, address: `s3://${bucket}${path === '' ? '' : `/${path}`}` };
}

/** The endpoint as a URL without trailing slash, query and user info; `USAGE` for an invalid address. */
export function checkedEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') {
    return `${url.origin}${url.pathname === '/' ? '' : url.pathname}`;
  }
  throw new CurlewError('USAGE', 'the S3 endpoint is not the address of a server', {
    hint: 'write it as https://host:port; credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile',
  });
}
