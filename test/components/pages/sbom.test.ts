/** The blocks of docs/sbom.md: SBOMs of packages and a bundle, and provenance that cosign verifies. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { startWeb, WEB_PROGRAM } from '../support/page-servers.ts';
import { oracle } from '../support/programs.ts';

const test = suite('components/pages/sbom', { timeoutMs: 300_000 });
const COSIGN = oracle('cosign');

unless(noPageMachine(WEB_PROGRAM, COSIGN), test)('SBOMs and provenance are written next to packages', async () => {
  await using machine = await pageMachine('docs/sbom.md', {
    files: {
      ...plainAddons('web@1.0.0', 'shop@2.0.0'),
      'installer.yaml': installerSpec('web: { version: latest }', 'shop: { version: latest }'),
    },
    hosts: ['packages.example.com'],
  });
  await machine.run(`ln -s '${COSIGN}' /run/bin/cosign
curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz
mkdir packages && cp /srv/dist/v1/*.tar.gz packages && cp packages/web-1.0.0.tar.gz .
curlew keygen release`);
  await startWeb(machine, { 'packages.example.com': '/srv' });
  await machine.block('curlew sbom');
  await machine.run(`cmp web-1.0.0.cdx.json packages/web-1.0.0.tar.gz.cdx.json
test -s packages/shop-2.0.0.tar.gz.cdx.json
curlew sbom https://packages.example.com/dist/web-1.0.0.tar.gz --quiet | cmp - web-1.0.0.cdx.json`);
  const sbom = JSON.parse(await machine.run('cat bundle.cdx.json')) as {
    readonly bomFormat: string;
    readonly specVersion: string;
    readonly components: readonly { readonly purl?: string }[];
  };
  assert.equal([sbom.bomFormat, sbom.specVersion], ['CycloneDX', '1.6']);
  const purls = sbom.components.map(({ purl }) => purl?.replace(/checksum=.*/, 'checksum=…'));
  const words = 'pkg:generic/words?checksum=…';
  assert.equal(purls, [
    'pkg:generic/web@1.0.0?arch=amd64',
    words,
    'pkg:generic/shop@2.0.0?arch=amd64',
    words,
    undefined,
  ]);

  const signed = await machine.block('curlew provenance');
  assert.match(
    signed,
    'packages/shop-2.0.0.tar.gz.provenance.sigstore.json: signed, built by urn:curlew:builder:unnamed',
  );
  assert.match(signed, 'Verified OK');
  const named = await machine.run(`export GITHUB_ACTIONS=true GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=o/r
export GITHUB_WORKFLOW_REF=o/r/.github/workflows/w.yml@refs/tags/v1 GITHUB_SHA=${'a'.repeat(40)}
curlew provenance packages/web-1.0.0.tar.gz && curlew provenance web-1.0.0.tar.gz
cmp packages/web-1.0.0.tar.gz.provenance.json web-1.0.0.tar.gz.provenance.json`);
  assert.match(named, 'built by https://github.com/o/r/.github/workflows/w.yml@refs/tags/v1');
  assert.equal(machine.left(), []);
});

test.run();
