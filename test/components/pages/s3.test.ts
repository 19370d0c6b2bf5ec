/** The blocks of docs/s3.md, with one server at the address of AWS and at that of the page. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { S3_PROGRAM, startBuckets } from '../support/page-servers.ts';
import { ROOT } from '../support/programs.ts';
import { S3_KEYS } from '../support/s3-servers.ts';

const test = suite('components/pages/s3', { timeoutMs: 300_000 });
const PAGE = 'docs/s3.md';

unless(noPageMachine(S3_PROGRAM), test)('stores at AWS and at another server, and a bundle that it makes', async () => {
  await using machine = await pageMachine(PAGE, {
    files: { ...plainAddons('web@1.0.0'), 'installer.yaml': installerSpec('web: { version: latest }') },
    hosts: ['s3.us-east-1.amazonaws.com', 's3.example.com'],
    env: { ...S3_KEYS, AWS_REGION: 'us-east-1' },
  });
  await startBuckets(machine, ['addons', 'addons.example'], { tls: true });
  await machine.block('curlew publish');
  await machine.run(`cd /var/s3/data
cmp addons.example/dist/VERSION addons/staging/VERSION
cmp addons.example/dist/web-1.0.0.tar.gz addons/staging/web-1.0.0.tar.gz
test -e addons/staging/.curlew/probe && test ! -e addons.example/dist/.curlew`);

  const [, made = ''] = /^`(curlew bundle .*? -o (s3:\/\/\S+))` /m.exec(await readFile(join(ROOT, PAGE), 'utf8')) ?? [];
  await machine.run(`export AWS_ENDPOINT_URL=https://s3.example.com
curlew publish --to s3://addons/dist
${made}
curlew bundle installer.yaml --from s3://addons/dist -o b.tar.gz
cmp b.tar.gz /var/s3/data/addons/bundles/b.tar.gz
! curlew bundle installer.yaml --from s3://addons/dist -o s3://addons/bundles/b.tar.gz`);
  assert.equal(machine.left(), []);
});

test('the rule against uploads that were left behind is one that AWS documents', async () => {
  const [, rule = ''] = /^```json\n([^]*?)^```$/m.exec(await readFile(join(ROOT, PAGE), 'utf8')) ?? [];
  assert.equal(JSON.parse(rule), {
    Rules: [
      { ID: 'uploads', Status: 'Enabled', Filter: {}, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 } },
    ],
  });
});

test.run();
