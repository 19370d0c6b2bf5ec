import { s3Error } from '../../src/store/s3-error.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

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

test.run();
