/** What a failure of an S3 server, or of the way to it, means to a user. */
import { CurlewError, errnoOf, type ErrorCode } from '../core/errors.ts';
import { connectionMessage, isCertificateProblem } from '../platform/http/failure.ts';

/** What was asked for, for messages. */
export interface S3Call {
  /** Such as `write v1/a.tar.gz to s3://bucket/dist`. */
  readonly doing: string;
  readonly bucket: string;
  /** The permission that AWS wants for it. */
  readonly permission: string;
  /** The profile that was asked for; the SDK's error does not name it. */
  readonly profile?: string | undefined;
  /** Texts that no message may repeat. */
  readonly secrets: readonly string[];
}

interface Meaning {
  readonly code: ErrorCode;
  readonly says: string;
  readonly hint?: string;
}

const CREDENTIALS = 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile (--s3-profile)';
const REGION = 'name the region of the bucket with --s3-region or AWS_REGION';

function rejected(says: string): Meaning {
  return { code: 'AUTH_FAILED', says, hint: CREDENTIALS };
}

const BY_NAME: Readonly<Record<string, Meaning>> = {
  CredentialsProviderError: { code: 'AUTH_FAILED', says: 'no credentials were found', hint: CREDENTIALS },
  InvalidAccessKeyId: rejected('the server does not know this access key'),
  // versitygw's, with status 404.
  XAdminUserNotFound: rejected('the server does not know this access key'),
  SignatureDoesNotMatch: rejected('the secret key is not the one of this access key'),
  AuthFailure: rejected('the credentials were rejected'),
  InvalidToken: rejected('the session token was rejected'),
  ExpiredToken: { code: 'AUTH_FAILED', says: 'the session token has expired', hint: 'log in again' },
  ExpiredTokenException: { code: 'AUTH_FAILED', says: 'the session token has expired', hint: 'log in again' },
  RequestTimeTooSkewed: {
    code: 'AUTH_FAILED',
    says: "this machine's clock and the server's differ too much",
    hint: 'set the clock',
  },
  RequestExpired: { code: 'AUTH_FAILED', says: 'the request arrived too late', hint: 'set the clock' },
  PermanentRedirect: { code: 'USAGE', says: 'the bucket lies in another region', hint: REGION },
  TemporaryRedirect: { code: 'USAGE', says: 'the bucket lies in another region', hint: REGION },
  AuthorizationHeaderMalformed: { code: 'USAGE', says: 'the server expects another region', hint: REGION },
  IllegalLocationConstraintException: { code: 'USAGE', says: 'the bucket lies in another region', hint: REGION },
  PreconditionFailed: { code: 'STORE_CONFLICT', says: 'it has changed meanwhile' },
  ConditionalRequestConflict: { code: 'STORE_CONFLICT', says: 'another writer is at it' },
  InvalidRange: { code: 'STORE_CONFLICT', says: 'it ends before these bytes' },
  NoSuchKey: { code: 'NOT_FOUND', says: 'it is not there' },
  NotFound: { code: 'NOT_FOUND', says: 'it is not there' },
  NoSuchUpload: { code: 'FETCH_FAILED', says: 'its upload was given up meanwhile', hint: 'run the same command again' },
  BadDigest: { code: 'DIGEST_MISMATCH', says: 'the bytes changed on their way' },
  XAmzContentSHA256Mismatch: { code: 'DIGEST_MISMATCH', says: 'the bytes changed on their way' },
  NotImplemented: { code: 'UNSUPPORTED', says: 'the server cannot do this' },
};

const STATUS: Readonly<Record<number, string>> = {
  301: 'PermanentRedirect',
  307: 'TemporaryRedirect',
  404: 'NotFound',
  409: 'ConditionalRequestConflict',
  412: 'PreconditionFailed',
  416: 'InvalidRange',
  501: 'NotImplemented',
};

/** HTTP status of a failure; undefined when no answer came, or none that could be read. */
export function statusOf(error: unknown): number | undefined {
  const metadata = metadataOf(error)?.['httpStatusCode'];
  return typeof metadata === 'number' ? metadata : undefined;
}

/** How often the request was sent; more than once means that an earlier one may have taken effect. */
export function attemptsOf(error: unknown): number {
  const attempts = metadataOf(error)?.['attempts'];
  return typeof attempts === 'number' ? attempts : 1;
}

function metadataOf(error: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  return error.$metadata as Readonly<Record<string, unknown>>;
}

/** The server's own name of a failure, such as `NoSuchUpload`. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** An error for users. What the server said is cut, and never repeats a secret. The cause is left out: it holds requests. */
export function s3Error(error: unknown, call: S3Call): CurlewError {
  const { doing } = call;
  if (error instanceof CurlewError)
    return new CurlewError(error.code, `${doing}: ${error.message}`, { hint: error.hint });
  const status = statusOf(error);
  const name = nameOf(error);
  if (name === 'CredentialsProviderError' && call.profile !== undefined) {
    return new CurlewError('AUTH_FAILED', `${doing}: the profile ${JSON.stringify(call.profile)} has no credentials`, {
      hint: 'check its name (--s3-profile, AWS_PROFILE) and its section in ~/.aws/credentials or ~/.aws/config',
    });
  }
  const known = meaningOf(name, status, call);
  if (known !== undefined) return new CurlewError(known.code, `${doing}: ${known.says}`, { hint: known.hint });
  const said = wordsOf(error, call.secrets);
  if (status === 429 || status === 503 || name === 'SlowDown') {
    return new CurlewError('FETCH_FAILED', `${doing}: the server asks to slow down (${said})`, {
      hint: 'run the same command again later, or with fewer --jobs; what has arrived is not sent again',
    });
  }
  if (/region is missing/i.test(said)) return new CurlewError('USAGE', `${doing}: no region is set`, { hint: REGION });
  if (/could not be found in shared credentials file|profile .* (?:not|requires)/i.test(said)) {
    return new CurlewError('AUTH_FAILED', `${doing}: ${said}`, { hint: CREDENTIALS });
  }
  return new CurlewError('FETCH_FAILED', `${doing}: ${status === undefined ? '' : `status ${status}, `}${said}`, {
    hint: hintOf(error, status),
  });
}

function meaningOf(name: string, status: number | undefined, call: S3Call): Meaning | undefined {
  if (name === 'NoSuchBucket') {
    return { code: 'NOT_FOUND', says: `there is no bucket ${call.bucket}`, hint: 'make the bucket first' };
  }
  const known = BY_NAME[name];
  if (known !== undefined) return known;
  if (status === 401) return rejected('the credentials were rejected');
  if (status === 403) {
    const hint = `the credentials need ${call.permission} on ${call.bucket}`;
    return { code: 'AUTH_FAILED', says: 'access was denied', hint };
  }
  if (status === 507) return { code: 'NO_SPACE', says: 'the server has no space left' };
  return status === undefined ? undefined : BY_NAME[STATUS[status] ?? ''];
}

function hintOf(error: unknown, status: number | undefined): string {
  if (status === 400) return 'check endpoint and region';
  if (isCertificateProblem(errnoOf(error) ?? '')) return 'a private certificate authority is added with --ca-file FILE';
  const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(errnoOf(error) ?? '');
  if (unreachable) return 'check the endpoint (--s3-endpoint), the network and its proxy';
  return 'run the same command again; what has arrived is not sent again';
}

function wordsOf(error: unknown, secrets: readonly string[]): string {
  const known = connectionMessage(error);
  if (known !== undefined) return known;
  const raw = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const masked = secrets.filter((text) => text !== '').reduce((text, one) => text.replaceAll(one, '[secret]'), raw);
  return masked.replaceAll(/[^\u0020-\u007e]+/g, ' ').slice(0, 200);
}
