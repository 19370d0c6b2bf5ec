/** The commands of docs/signing.md: for whoever signs, for a machine without curlew, and for releases in stores. */
import { copyFile } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons, type Machine } from '../support/page-machine.ts';
import { S3_ENVIRONMENT, S3_PROGRAM, startBuckets, startWeb, WEB_PROGRAM } from '../support/page-servers.ts';
import { oracle, ROOT } from '../support/programs.ts';

const test = suite('components/pages/signing', { timeoutMs: 300_000 });
const HOST = 'packages.example.com';
const COSIGN = oracle('cosign');
const cosignPart = /^cosign |^tar -xOf/;

/** A release of curlew itself as its workflow signs it, of one file. */
const OWN_RELEASE = `printf x >curlew-VERSION-linux-amd64.tar.gz
sha256sum curlew-VERSION-linux-amd64.tar.gz >SHA256SUMS
mkdir docs && cp release.pub docs/
export GITHUB_ACTIONS=true GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=example/curlew GITHUB_RUN_ID=1 \\
  GITHUB_RUN_ATTEMPT=1 GITHUB_SHA=0123456789abcdef0123456789abcdef01234567 GITHUB_REF=refs/tags/v1 \\
  GITHUB_WORKFLOW_REF=example/curlew/.github/workflows/release.yml@refs/tags/v1
'${process.execPath}' --import 'file://${ROOT}/node_modules/tsx/dist/esm/index.mjs' '${ROOT}/scripts/release-provenance.ts' \\
  . SHA256SUMS VERSION <release.key`;

/** With a bundle, and what stores of the page have. */
async function signersMachine(): Promise<Machine> {
  const machine = await pageMachine('docs/signing.md', {
    hosts: [HOST],
    env: { ...S3_ENVIRONMENT, COSIGN_PASSWORD: 'hush' },
    files: { ...plainAddons('web@1.0.0'), 'installer.yaml': installerSpec('web: { version: latest }') },
  });
  await machine.run(`curlew publish --to /srv/store --release v1
curlew bundle installer.yaml --from /srv/store -o bundle.tar.gz`);
  return machine;
}

unless(noPageMachine(S3_PROGRAM, WEB_PROGRAM, 'openssl', 'sha256sum'), test)(
  'a bundle, a release of curlew and releases of a store are signed and checked',
  async () => {
    await using machine = await signersMachine();
    assert.match(await machine.block('curlew keygen release '), /^signed /m);
    assert.match(await machine.block('-signature bundle.tar.gz.sig bundle.tar.gz'), /^Verified OK$/m);
    assert.is(await machine.block('bundle.tar.gz.sha256'), 'bundle.tar.gz: OK');
    await machine.run('curlew reset --yes');
    await machine.block('bundle/install.sh --key release.pub');
    await machine.run('test -s /etc/web.txt');

    await machine.run(OWN_RELEASE);
    assert.is(
      await machine.block('-signature SHA256SUMS.sig SHA256SUMS'),
      'Verified OK\ncurlew-VERSION-linux-amd64.tar.gz: OK',
    );

    await startBuckets(machine, ['bucket']);
    await machine.run(`curlew keygen staging
curlew publish --to /srv/staging --release v1.4.0 --sign staging.key
curlew publish --to s3://bucket/dist --release v1.4.0 --sign release.key`);
    await startWeb(machine, { [HOST]: '/srv' });
    await machine.run('rm bundle.tar.gz');
    assert.match(await machine.block('curlew promote'), /^web .*already applied/m);
    await machine.block('--expires 30d');
    assert.equal(
      machine.left().filter((line) => !cosignPart.test(line)),
      [],
    );
  },
);

unless(noPageMachine(COSIGN), test)('cosign checks bundles, releases of curlew and of stores, and signs', async () => {
  await using machine = await signersMachine();
  await copyFile(COSIGN, machine.at('/run/bin/cosign'));
  await machine.run(`curlew keygen release
curlew sign bundle.tar.gz --key release.key
curlew publish --to store --release v1.4.0 --sign release.key
cp -r store/v1.4.0 store/VERSION.sigstore.json .
${OWN_RELEASE}`);
  assert.match(await machine.block('urn:curlew:archive:v1 bundle.tar.gz'), /Verified OK/);
  assert.match(await machine.block('slsaprovenance1'), /Verified OK/);
  assert.match(await machine.block('urn:curlew:release:v1'), /Verified OK/);
  await machine.run('cosign generate-key-pair');
  await machine.block('cosign sign-blob');
  assert.match(await machine.run('curlew verify bundle.tar.gz --key cosign.pub'), /^signed with .*cosign\.pub$/m);
});

test.run();
