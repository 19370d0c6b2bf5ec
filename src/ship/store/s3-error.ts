/** Converts failures of an S3 server, or of the connection to it, to errors for users. */
import { CurlewError, errnoOf, redact, type ErrorCode } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { certificateHint, connectionMessage, isNotTls } from '../../platform/http/failure.ts';

/** The failed call, for messages. */
export interface S3Call {
  /** Such as `write v1/a.tar.gz to s3://bucket/dist`. */
  readonly doing: string;
  readonly bucket: string;
  /** Undefined for AWS itself. */
  readonly endpoint?: string | undefined;
  /** The AWS permission that it needs. */
  readonly permission: string;
  /** The configured profile; the SDK's error does not contain it. */
  readonly profile?: string | undefined;
  /** Texts to mask in messages. */
  readonly secrets: readonly string[];
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
}

const CREDENTIALS = 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile (--s3-profile)';
const SET_CREDENTIALS = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or select a profile with --s3-profile';
const REGION = 'specify the region of the bucket with --s3-region or AWS_REGION';

const OTHER_REGION: Meaning = { code: 'USAGE', message: 'the bucket is in another region', hint: REGION };

function rejected(message: string): Meaning {
  return { code: 'AUTH_FAILED', message, hint: CREDENTIALS };
}

const BY_NAME: Readonly<Record<string, Meaning>> = {
  CredentialsProviderError: { code: 'AUTH_FAILED', message: 'no credentials were found', hint: SET_CREDENTIALS },
  InvalidAccessKeyId: rejected('the server does not know this access key'),
  // From versitygw, with status 404.
  XAdminUserNotFound: rejected('the server does not know this access key'),
  SignatureDoesNotMatch: rejected('the secret key does not match the access key'),
  AuthFailure: rejected('the credentials were rejected'),
  InvalidToken: rejected('the session token was rejected'),
  ExpiredToken: { code: 'AUTH_FAILED', message: 'the session token has expired', hint: 'log in again' },
  ExpiredTokenException: { code: 'AUTH_FAILED', message: 'the session token has expired', hint: 'log in again' },
  RequestTimeTooSkewed: {
    code: 'AUTH_FAILED',
    message: "this machine's clock and the server's differ too much",
    hint: 'set the clock',
  },
  RequestExpired: { code: 'AUTH_FAILED', message: 'the request arrived too late', hint: 'set the clock' },
  PermanentRedirect: OTHER_REGION,
  TemporaryRedirect: OTHER_REGION,
  AuthorizationHeaderMalformed: { code: 'USAGE', message: 'the server expects another region', hint: REGION },
  IllegalLocationConstraintException: OTHER_REGION,
  PreconditionFailed: { code: 'STORE_CONFLICT', message: 'it has changed' },
  ConditionalRequestConflict: { code: 'STORE_CONFLICT', message: 'another writer is active' },
  InvalidRange: { code: 'STORE_CONFLICT', message: 'it ends before these bytes' },
  NoSuchKey: { code: 'NOT_FOUND', message: 'it does not exist' },
  NotFound: { code: 'NOT_FOUND', message: 'it does not exist' },
  NoSuchUpload: { code: 'FETCH_FAILED', message: 'its upload was aborted', hint: 'run the same command again' },
  BadDigest: { code: 'DIGEST_MISMATCH', message: 'the bytes changed in transit' },
  XAmzContentSHA256Mismatch: { code: 'DIGEST_MISMATCH', message: 'the bytes changed in transit' },
  NotImplemented: { code: 'UNSUPPORTED', message: 'the server does not support this' },
};

const STATUS: Readonly<Record<number, string>> = {
  301: 'PermanentRedirect',
  304: 'PreconditionFailed',
  307: 'TemporaryRedirect',
  404: 'NotFound',
  409: 'ConditionalRequestConflict',
  412: 'PreconditionFailed',
  416: 'InvalidRange',
  501: 'NotImplemented',
};

/** HTTP status of a failure; undefined without a readable response. */
export function s3Status(error: unknown): number | undefined {
  const metadata = metadataOf(error)?.['httpStatusCode'];
  return typeof metadata === 'number' ? metadata : undefined;
}

/** True if a condition of a write does not hold. Some servers respond as they do to a read whose reader has the object. */
export function isRefusedCondition(error: unknown): boolean {
  return [304, 409, 412].includes(s3Status(error) ?? 0);
}

/** How often the request was sent. After more than one attempt, an earlier one may have succeeded. */
export function attemptsOf(error: unknown): number {
  const attempts = metadataOf(error)?.['attempts'];
  return typeof attempts === 'number' ? attempts : 1;
}

function metadataOf(error: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  return error.$metadata as Readonly<Record<string, unknown>>;
}

/** The server's error code, such as `NoSuchUpload`. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** An error for users, with the server's message truncated and secrets masked. Has no cause, since that contains requests. */
export function s3Error(error: unknown, call: S3Call): CurlewError {
  const { doing } = call;
  if (error instanceof CurlewError) return error.with({ message: `cannot ${doing}: ${error.message}` });
  const status = s3Status(error);
  const name = nameOf(error);
  if (name === 'CredentialsProviderError' && call.profile !== undefined) {
    return new CurlewError(
      'AUTH_FAILED',
      `cannot ${doing}: the profile ${JSON.stringify(call.profile)} has no credentials`,
      { hint: 'check its name (--s3-profile, AWS_PROFILE) and its section in ~/.aws/credentials or ~/.aws/config' },
    );
  }
  const region = regionOf(error);
  const known = meaningOf(name, status, call) ?? (status === 400 && region !== undefined ? OTHER_REGION : undefined);
  if (known !== undefined) {
    const isRegion = known.hint === REGION && region !== undefined;
    const message = isRegion ? `the bucket ${call.bucket} is in the region ${region}` : known.message;
    const hint = isRegion ? `add --s3-region ${region}, or set AWS_REGION=${region}` : known.hint;
    return new CurlewError(known.code, `cannot ${doing}: ${message}`, { hint });
  }
  const unusable = endpointError(error, call);
  if (unusable !== undefined) return unusable;
  const detail = detailOf(error, call.secrets);
  if (status === 429 || status === 503 || name === 'SlowDown') {
    return new CurlewError('FETCH_FAILED', `cannot ${doing}: the server asked curlew to slow down (${detail})`, {
      hint: writes(call)
        ? `run the same command again later, or with fewer --jobs; ${KEPT}`
        : 'run the same command again later',
    });
  }
  if (/region is missing/i.test(detail))
    return new CurlewError('USAGE', `cannot ${doing}: no region is set`, {
      hint: `${REGION}; for a server other than AWS, specify its address with --s3-endpoint`,
    });
  if (/could not be found in shared credentials file|profile .* (?:not|requires)/i.test(detail)) {
    return new CurlewError('AUTH_FAILED', `cannot ${doing}: ${detail}`, { hint: CREDENTIALS });
  }
  return new CurlewError(
    'FETCH_FAILED',
    `cannot ${doing}: ${status === undefined ? atEndpoint(call) : `status ${status}, `}${detail}`,
    { hint: hintOf(error, status, call) },
  );
}

/** A server that does not speak TLS, or whose response is not that of S3; undefined for other failures. */
function endpointError(error: unknown, { doing, endpoint }: S3Call): CurlewError | undefined {
  if (!(error instanceof Error)) return undefined;
  const server = endpoint === undefined ? 'the server' : redact(endpoint);
  if (isNotTls(error, errnoOf(error) ?? '')) {
    return new CurlewError('FETCH_FAILED', `cannot ${doing}: ${server} does not speak TLS`, {
      hint: 'write http:// instead of https:// in --s3-endpoint, or check its port',
    });
  }
  if (!/XML parse error|Deserialization error/i.test(error.message)) return undefined;
  return new CurlewError('FETCH_FAILED', `cannot ${doing}: ${server} does not respond as an S3 server does`, {
    hint: 'check the host and port of the endpoint (--s3-endpoint), and its proxy',
  });
}

/** The endpoint, for failures without a response. */
function atEndpoint({ endpoint }: S3Call): string {
  return endpoint === undefined ? '' : `${redact(endpoint)}: `;
}

/** The bucket's own region, if the server names it; a response to HEAD has it only in a header. */
function regionOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { Region: named, $response: response } = error as Error & {
    readonly Region?: unknown;
    readonly $response?: unknown;
  };
  const headers = isObject(response) && isObject(response['headers']) ? response['headers'] : {};
  const region = named ?? headers['x-amz-bucket-region'];
  return typeof region === 'string' && /^[a-z0-9-]{1,40}$/.test(region) ? region : undefined;
}

function meaningOf(name: string, status: number | undefined, call: S3Call): Meaning | undefined {
  if (name === 'NoSuchBucket') {
    return { code: 'NOT_FOUND', message: `the bucket ${call.bucket} does not exist`, hint: 'create the bucket first' };
  }
  const known = BY_NAME[name];
  if (known !== undefined) return known;
  if (status === 401) return rejected('the credentials were rejected');
  if (status === 403) {
    const hint = `the credentials need ${call.permission} on ${call.bucket}`;
    return { code: 'AUTH_FAILED', message: 'access was denied', hint };
  }
  if (status === 507) return { code: 'NO_SPACE', message: 'the server has no space left' };
  return status === undefined ? undefined : BY_NAME[STATUS[status] ?? ''];
}

const KEPT = 'uploaded parts are not sent again';

/** The call is part of an upload. */
function writes({ permission }: S3Call): boolean {
  return /PutObject|MultipartUploadParts/.test(permission);
}

/** Failures of one request that the server names, with what helps beyond its own words. */
const REFUSALS: readonly (readonly [name: RegExp, hint: string])[] = [
  [/^InvalidBucketName$/, 'check the name of the bucket'],
  [/^KeyTooLongError$/, 'use a shorter prefix in the address of the store'],
  [/^(?:RequestTimeout|IncompleteBody)$/, 'run the same command again'],
  [/^KMS/, 'check the encryption key of the bucket, and the permission to use it'],
  [/^(?:EntityTooLarge|QuotaExceeded)/, "raise the server's limit, or use another bucket"],
];
/** What the SDK calls a response without a document, and some servers any response. */
const UNNAMED = /^(?:|\d+|Error|Unknown|UnknownError|BadRequest|Bad Request)$/;

/** Undefined if the message has the server's reason, and no advice is known. */
function hintOf(error: unknown, status: number | undefined, call: S3Call): string | undefined {
  const name = nameOf(error);
  const refusal = REFUSALS.find(([known]) => known.test(name));
  if (refusal !== undefined) return refusal[1];
  if (status === 400) return UNNAMED.test(name) ? 'check endpoint and region' : undefined;
  const certificate = certificateHint(error);
  if (certificate !== undefined) return certificate;
  const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(errnoOf(error) ?? '');
  if (unreachable) return 'check the endpoint (--s3-endpoint), the network and its proxy';
  return writes(call) ? `run the same command again; ${KEPT}` : 'run the same command again';
}

function detailOf(error: unknown, secrets: readonly string[]): string {
  const known = connectionMessage(error);
  if (known !== undefined) return known;
  const raw = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const masked = secrets.filter((text) => text !== '').reduce((text, one) => text.replaceAll(one, '[secret]'), raw);
  return masked.replaceAll(/[^\u0020-\u007e]+/g, ' ').slice(0, 200);
}
