/** A publish by the identity of a workflow's run: its token becomes a role at a real token service, and no key exists. */
import * as assert from '../support/assert.ts';
import { addonFiles, ci, repository } from '../support/ci.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { startServer } from '../support/web-server.ts';
import { BUCKET, cannotServe, startS3 } from './support/s3-servers.ts';

const test = suite('publishing by the identity of a run', { timeoutMs: 120_000 });

const TOKEN = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJyZXBvOmEvYiJ9.c2ln';
const reason = cannotServe('moto');

if (reason === undefined) {
  for (const [title, words, status] of [
    ['with the identity', ['with-identity'], 0],
    ['without', [], 13],
  ] as const) {
    test(`${title}, publishing ends with ${status}`, async () => {
      await using box = await repository(addonFiles('web'));
      await using data = await tree();
      await using server = await startS3('moto', data.path);
      await using github = await startServer(() => ({ status: 200, body: JSON.stringify({ value: TOKEN }) }));
      const script = `${import.meta.dirname}/../../scripts/ci/publish-staging`;
      const [name = script, ...rest] = [...words, script];
      const env = {
        CURLEW_STAGING: `s3://${BUCKET}/staging`,
        AWS_ENDPOINT_URL_S3: server.url,
        AWS_ENDPOINT_URL_STS: server.url,
        AWS_REGION: 'us-east-1',
        AWS_EC2_METADATA_DISABLED: 'true',
        AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/publisher',
        AWS_ACCESS_KEY_ID: '',
        AWS_SECRET_ACCESS_KEY: '',
        ACTIONS_ID_TOKEN_REQUEST_URL: `${github.url}/token?version=2`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token',
      };
      const result = await ci(box, [name.replace(/.*\//, ''), ...rest], env);
      assert.is(result.exitCode, status, result.stdout + result.stderr);
      assert.not.match(result.stdout + result.stderr, TOKEN);
      assert.is(github.log.length, words.length);
    });
  }
} else {
  test.skip('with the identity', reason);
}

test.run();
