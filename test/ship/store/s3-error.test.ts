import { s3Error } from '../../../src/ship/store/s3-error.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('what failures of S3 mean');
const call = { doing: 'read VERSION in s3://b/p', bucket: 'b', permission: 's3:GetObject', secrets: [] };

for (const [code, words] of [
  ['ECONNREFUSED', 'the connection was refused'],
  ['ENOTFOUND', 'host not found'],
] as const) {
  test(`a server that cannot be reached is reported in words, not as ${code}`, () => {
    const error = Object.assign(new Error(`connect ${code} 127.0.0.1:1`), { code });
    const { message, hint } = s3Error(error, call);
    assert.is(message, `cannot read VERSION in s3://b/p: ${words}`);
    assert.match(hint ?? '', '--s3-endpoint');
  });
}

test('a connection that is refused names the endpoint', () => {
  const error = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
  const { message } = s3Error(error, { ...call, endpoint: 'http://127.0.0.1:1' });
  assert.is(message, 'cannot read VERSION in s3://b/p: http://127.0.0.1:1: the connection was refused');
});

for (const [title, says, words, advice] of [
  [
    'does not speak TLS',
    'write EPROTO 00:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:',
    'https://h:9000 does not speak TLS',
    'write http:// instead of https://',
  ],
  [
    'is no S3 server',
    '@aws-sdk XML parse error: x Deserialization error: to see the raw response, inspect the hidden field {error}.$response on this object.',
    'https://h:9000 does not respond as an S3 server does',
    'check the host and port',
  ],
] as const) {
  test(`a server that ${title} is named so`, () => {
    const { message, hint } = s3Error(new Error(says), { ...call, endpoint: 'https://h:9000' });
    assert.is(message, `cannot read VERSION in s3://b/p: ${words}`);
    assert.match(hint ?? '', advice);
  });
}

test('uploaded parts are named in the hint of an upload only', () => {
  for (const status of [500, 503]) {
    const error = Object.assign(new Error('busy'), { $metadata: { httpStatusCode: status } });
    assert.match(s3Error(error, call).hint ?? '', /^run the same command again(?: later)?$/);
    const upload = s3Error(error, { ...call, doing: 'write a to s3://b/p', permission: 's3:PutObject' });
    assert.match(upload.hint ?? '', /; uploaded parts are not sent again$/);
  }
});

test('without a region, the hint names the endpoint, too; without credentials, the variables to set', () => {
  assert.match(s3Error(new Error('Region is missing'), call).hint ?? '', '--s3-endpoint');
  const missing = Object.assign(new Error('x'), { name: 'CredentialsProviderError' });
  assert.match(s3Error(missing, call).hint ?? '', 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
});

/** What the SDK keeps of the response. */
function answered(region: string): object {
  return { $response: { headers: { 'x-amz-bucket-region': region } } };
}

test('a profile without credentials is named', () => {
  const says = 'Could not load credentials from any providers';
  const error = Object.assign(new Error(says), { name: 'CredentialsProviderError' });
  const { code, message, hint } = s3Error(error, { ...call, profile: 'nope' });
  assert.equal(
    [code, message],
    ['AUTH_FAILED', 'cannot read VERSION in s3://b/p: the profile "nope" has no credentials'],
  );
  assert.match(hint ?? '', '--s3-profile');
});

for (const [title, error] of [
  ['of a redirect', { name: 'PermanentRedirect', $metadata: { httpStatusCode: 301 }, ...answered('eu-west-3') }],
  ['of a signature for another one', { name: 'AuthorizationHeaderMalformed', Region: 'eu-west-3' }],
  ['of HEAD, which has no document', { name: 'Unknown', $metadata: { httpStatusCode: 400 }, ...answered('eu-west-3') }],
] as const) {
  test(`the region that the server names in its response is in the message: ${title}`, () => {
    const { code, message, hint } = s3Error(Object.assign(new Error('x'), error), call);
    assert.equal(
      [code, message],
      ['USAGE', 'cannot read VERSION in s3://b/p: the bucket b is in the region eu-west-3'],
    );
    assert.is(hint, 'add --s3-region eu-west-3, or set AWS_REGION=eu-west-3');
  });
}

for (const [name, advice] of [
  ['Unknown', 'check endpoint and region'],
  ['400', 'check endpoint and region'],
  ['InvalidBucketName', 'check the name of the bucket'],
  ['KeyTooLongError', 'use a shorter prefix in the address of the store'],
  ['RequestTimeout', 'run the same command again'],
  ['KMS.DisabledException', 'check the encryption key of the bucket, and the permission to use it'],
  ['InvalidArgument', undefined],
] as const) {
  test(`status 400 with the code ${name} is answered with ${advice ?? "the server's words"}`, () => {
    const error = Object.assign(new Error('its words'), { name, $metadata: { httpStatusCode: 400 } });
    const { message, hint } = s3Error(error, call);
    assert.match(message, 'its words');
    assert.is(hint, advice);
  });
}

test.run();
