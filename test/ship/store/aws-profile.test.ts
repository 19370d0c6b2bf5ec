import { readAwsProfile } from '../../../src/ship/store/aws-profile.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/store/aws-profile');

const CONFIG = `# shared
[default]
region = eu-west-3
endpoint_url = https://default.example ; for all services

[profile lab]
services = labs
region=us-gov-1
endpoint_url = https://all.example

[profile off]
endpoint_url = https://all.example
ignore_configured_endpoint_urls = true

[services labs]
dynamodb =
  endpoint_url = https://dynamodb.example
s3 =
  endpoint_url = https://s3.example:9000
  max_concurrent_requests = 3
`;

for (const [profile, endpoint, region] of [
  [undefined, 'https://default.example', 'eu-west-3'],
  ['lab', 'https://s3.example:9000', 'us-gov-1'],
  ['off', undefined, undefined],
  ['none', undefined, undefined],
] as const) {
  test(`the profile ${profile ?? 'default'} has the endpoint ${endpoint ?? 'of AWS'}`, () => {
    assert.equal(readAwsProfile(CONFIG, profile), { endpoint, region });
  });
}

test.run();
