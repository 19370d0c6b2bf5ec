/** The identity of a workflow's run: where its token goes, and where it never appears. */
import * as assert from '../../support/assert.ts';
import { ci } from '../../support/ci.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { startServer } from '../../support/web-server.ts';

const test = suite('scripts/ci/with-identity');
const withCurl = unless(missing('curl'), test);

const REQUEST = 'request-token';
const TOKEN = 'run-token';
const SHOW =
  'env | grep -e ^AWS_ -e ^ACTIONS_ | sed "s|=/.*|=PATH|" | sort; cat "$AWS_WEB_IDENTITY_TOKEN_FILE"; stat -c %a "$AWS_WEB_IDENTITY_TOKEN_FILE"';

withCurl(
  'the command gets the role and a private file with the token; nothing else has it, nothing stays',
  async () => {
    await using box = await tree();
    await using server = await startServer(() => ({ status: 200, body: JSON.stringify({ value: TOKEN }) }));
    const { exitCode, stdout, stderr } = await ci(box, ['with-identity', 'bash', '-c', SHOW], {
      AWS_ROLE_ARN: 'role',
      AWS_REGION: '',
      ACTIONS_ID_TOKEN_REQUEST_URL: `${server.url}/token?version=2`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST,
      GITHUB_RUN_ID: '7',
      TMPDIR: box.path,
    });
    assert.is(exitCode, 0, stderr);
    assert.is(
      stdout,
      `AWS_ROLE_ARN=role\nAWS_ROLE_SESSION_NAME=curlew-7\nAWS_WEB_IDENTITY_TOKEN_FILE=PATH\n${TOKEN}\n600`,
    );
    assert.is(stderr, '');
    const [asked] = server.log;
    assert.is(asked?.path, '/token?version=2&audience=sts.amazonaws.com');
    assert.is(asked?.headers['authorization'], `bearer ${REQUEST}`);
  },
);

withCurl('a refusal is said without the token, and the command does not run', async () => {
  await using box = await tree();
  await using server = await startServer(() => ({ status: 403, body: 'no' }));
  const { exitCode, stdout, stderr } = await ci(box, ['with-identity', 'echo', 'ran'], {
    AWS_ROLE_ARN: 'role',
    ACTIONS_ID_TOKEN_REQUEST_URL: `${server.url}/token?version=2`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST,
  });
  assert.is(exitCode, 1);
  assert.is(stdout, '');
  assert.match(stderr, '403');
  assert.match(stderr, 'GitHub gave no token for this run');
  assert.not.match(stderr, REQUEST);
});

test('a job without the permission is told which', async () => {
  await using box = await tree();
  const { stderr } = await ci(box, ['with-identity', 'true'], { AWS_ROLE_ARN: 'role' });
  assert.match(stderr, 'id-token: write');
});

test('without a role the command runs as it is, and empty variables are none', async () => {
  await using box = await tree();
  const env = { AWS_ROLE_ARN: '', AWS_REGION: '', AWS_ACCESS_KEY_ID: 'key' };
  const { stdout } = await ci(box, ['with-identity', 'bash', '-c', 'env | grep ^AWS_'], env);
  assert.is(stdout, 'AWS_ACCESS_KEY_ID=key');
});

test.run();
