/** The way to a server of the S3 protocol: proxies with and without credentials, and authorities of one's own. */
import { digestOf } from '../../src/core/digest.ts';
import { createS3Store } from '../../src/ship/store/s3.ts';
import * as assert from '../support/assert.ts';
import { collect } from '../support/bytes.ts';
import { noReport } from '../support/context.ts';
import { curlew } from '../support/curlew.ts';
import { startProxy } from '../support/proxy-server.ts';
import { patterned, uploadOf } from '../support/store-conformance.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate, type TestCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';
import { BUCKET, cannotServe, S3_KEYS, startS3, type S3Server } from './support/s3-servers.ts';

const test = suite('the way to a store in S3', { timeoutMs: 120_000 });

const NAME = 's3.test';
const ADDRESS = `s3://${BUCKET}/dist`;
const authorization = `Basic ${Buffer.from('me:canary').toString('base64')}`;

const reason = cannotServe('versitygw');
if (reason !== undefined) {
  test.skip('everything', reason);
} else {
  let box: Tree;
  let tls: TestCertificate;
  let secure: S3Server;
  let plain: S3Server;
  const portOf = ({ url }: S3Server): number => Number(new URL(url).port);
  const proxied = async () =>
    startProxy({ hosts: { [`${NAME}:443`]: portOf(secure), [`${NAME}:80`]: portOf(plain) }, authorization });
  const withCredentials = (url: string): string => url.replace('//', '//me:canary@');

  test.before(async () => {
    tls = await makeCertificate([NAME]);
    box = await tree({ 'ca.pem': tls.ca, 'secure/.keep': '', 'plain/.keep': '' });
    secure = await startS3('versitygw', box.at('secure'), { tls });
    plain = await startS3('versitygw', box.at('plain'));
  });
  test.after(async () => {
    await secure[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  for (const scheme of ['https', 'http'] as const) {
    test(`${scheme}: objects of every size go through the proxy, in both directions`, async ({ signal }) => {
      await using proxy = await proxied();
      const address = withCredentials(proxy.url);
      const env = { HTTPS_PROXY: address, http_proxy: address };
      const options = { endpoint: `${scheme}://${NAME}`, env, ca: [tls.ca], report: noReport };
      const store = createS3Store(ADDRESS, options);
      const data = patterned(20_000_003);
      await store.put('large', uploadOf(data), { ifNoneMatch: '*', digest: digestOf(data), signal });
      await store.copy('large', 'copy', { ifNoneMatch: '*', signal });
      assert.is(digestOf(await collect((await store.get('copy', { signal })).body)), digestOf(data));
      const taken = store.put('copy', Buffer.from('x'), { ifNoneMatch: '*', isFree: true, signal });
      await assert.rejectsWith(taken, 'STORE_CONFLICT');
      assert.ok(proxy.log.length > 0);
      const expected = scheme === 'https' ? /^CONNECT s3\.test:443$/ : /^[A-Z]+ http:\/\/s3\.test\//;
      for (const line of proxy.log) assert.match(line, expected);
    });

    test(`${scheme}: a proxy that rejects the credentials is named, without ours`, async ({ signal }) => {
      await using proxy = await startProxy({ authorization: 'Basic right' });
      const address = withCredentials(proxy.url);
      const env = { HTTPS_PROXY: address, HTTP_PROXY: address };
      const store = createS3Store(ADDRESS, { endpoint: `${scheme}://${NAME}`, env, report: noReport });
      const error = await assert.rejectsWith(
        store.head('k', { signal }),
        'AUTH_FAILED',
        /stat k in s3:.*the proxy 127\.0\.0\.1:\d+ rejects the credentials/,
      );
      assert.not.match(`${error.message} ${error.hint} ${String(error.cause)}`, /canary|bWU6/);
    });
  }

  test('a proxy that is not there, and one that is no proxy, are named', async ({ signal }) => {
    for (const address of ['http://me:canary@127.0.0.1:1', withCredentials(plain.url)]) {
      const env = { HTTPS_PROXY: address };
      const store = createS3Store(ADDRESS, { endpoint: `https://${NAME}`, env, report: noReport });
      const error = await assert.rejectsWith(
        store.head('k', { signal }),
        'FETCH_FAILED',
        /through the proxy 127\.0\.0\.1:/,
      );
      assert.not.match(`${error.message} ${error.hint}`, /canary/);
    }
  });

  test('this machine itself is asked without the proxy', async ({ signal }) => {
    const env = { HTTPS_PROXY: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' };
    for (const { url } of [plain, secure]) {
      const store = createS3Store(ADDRESS, { endpoint: url, env, ca: [tls.ca], report: noReport });
      assert.is(await store.head('none', { signal }), undefined);
    }
  });

  for (const trust of ['--ca-file', 'SSL_CERT_FILE', 'nothing'] as const) {
    test(`a publisher behind a proxy, with ${trust} for the server's authority`, async () => {
      await using proxy = await proxied();
      const name = trust === 'nothing' ? 'none' : 'web';
      const folder = `addons/${name}/1.0.0`;
      await using work = await tree({
        'ca.pem': tls.ca,
        [`${folder}/Manifest`]: 'asset page ./page.html\n',
        [`${folder}/page.html`]: '<p>hello</p>\n',
        [`${folder}/install.sh`]: `${name}() { :; }\n`,
      });
      const env = {
        ...S3_KEYS,
        HTTPS_PROXY: withCredentials(proxy.url),
        ...(trust === 'SSL_CERT_FILE' ? { SSL_CERT_FILE: work.at('ca.pem') } : {}),
      };
      const server = ['--s3-endpoint', `https://${NAME}`, ...(trust === '--ca-file' ? ['--ca-file', 'ca.pem'] : [])];
      const store = `s3://${BUCKET}/${trust.replaceAll(/\W/g, '').toLowerCase()}`;
      const published = await curlew(['publish', '--to', store, '--release', 'v1', ...server], { cwd: work.path, env });
      const told = await curlew(['versions', '--from', store, ...server], { cwd: work.path, env });
      assert.not.match(`${published.stdout}${published.stderr}${told.stdout}${told.stderr}`, /canary|testsecret/);
      if (trust === 'nothing') {
        assert.not.equal(published.exitCode, 0);
        assert.match(published.stderr, /certificate|self-signed|issuer/i);
        assert.match(published.stderr, /--ca-file/);
        return;
      }
      assert.is(published.exitCode, 0, published.stderr);
      assert.match(told.stdout, /web/);
      assert.ok(proxy.log.every((line) => line === `CONNECT ${NAME}:443`));
    });
  }

  test('an access key that the server does not know, and a profile without credentials, are no empty store', async () => {
    await using work = await tree();
    const server = ['--s3-endpoint', plain.url];
    const versions = async (more: readonly string[], env: Readonly<Record<string, string>>) =>
      curlew(['versions', '--from', `s3://${BUCKET}/empty`, ...server, ...more], { cwd: work.path, env });
    const unknown = await versions([], { ...S3_KEYS, AWS_ACCESS_KEY_ID: 'nobody' });
    assert.is(unknown.exitCode, 13);
    assert.match(unknown.stderr, 'the server does not know this access key');
    const profile = await versions(['--s3-profile', 'nope'], { ...S3_KEYS, AWS_EC2_METADATA_DISABLED: 'true' });
    assert.is(profile.exitCode, 13);
    assert.match(
      profile.stderr,
      /^error AUTH_FAILED: cannot read VERSION in \S+: the profile "nope" has no credentials\n {2}hint: /,
    );
  });
}

test.run();
