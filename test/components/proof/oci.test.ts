/** The conformance suite of the OCI distribution specification, which pulls from `curlew serve`. */
import { execa } from 'execa';
import * as assert from '../../support/assert.ts';
import { MAIN } from '../../support/compiled.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { unless } from '../../support/needs.ts';
import { freePort } from '../../support/ports.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { startDaemon } from '../support/daemon.ts';
import { cannotRun, oracle } from '../support/programs.ts';
import { assertSays } from '../support/proof.ts';

const test = suite('components/proof/oci', { timeoutMs: 120_000 });
const SUITE = oracle('conformance');

unless(cannotRun(SUITE), test)('the suite finds no fault in pulling, listing and referrers', async () => {
  await using box = await tree();
  const image = makeImage([makeLayer({ 'bin/a': 'a' }), makeLayer({ 'bin/b': 'b' })], 'oci', 'proof');
  const other = makeImage([makeLayer({ 'bin/c': 'c' }, 'docker')], 'docker', 'proof');
  const images = { 'registry.example/team/web:1.2': image, 'registry.example/team/web:1.3': other };
  await publishImages(box, [{ name: 'web', version: '1.0.0', images }], new AbortController().signal);
  const host = `127.0.0.1:${await freePort()}`;
  await using _server = await startDaemon({
    command: process.execPath,
    args: [MAIN, 'serve', '--store', box.at('store'), '--listen', host],
    logFile: box.at('serve.log'),
    ready: async () => (await fetch(`http://${host}/healthz`)).ok,
  });
  const blobs = [image, other].flatMap(({ config, layers }) => [config.digest, ...layers.map(({ digest }) => digest)]);
  const manifests = [image.manifest.digest, other.manifest.digest];
  // The status says nothing: in read-only mode, the suite fails to write one of its reports.
  const { all } = await execa(SUITE, [], {
    cwd: box.path,
    all: true,
    reject: false,
    env: {
      OCI_REGISTRY: host,
      OCI_TLS: 'disabled',
      OCI_REPO1: 'team/web',
      OCI_RESULTS_DIR: box.at('results'),
      OCI_API_PUSH: 'false',
      OCI_API_BLOBS_DELETE: 'false',
      OCI_API_BLOBS_DIGEST_HEADER: 'true',
      OCI_API_MANIFESTS_DELETE: 'false',
      OCI_API_TAGS_DELETE: 'false',
      OCI_RO_DATA_TAGS: '1.2 1.3',
      OCI_RO_DATA_MANIFESTS: manifests.join(' '),
      OCI_RO_DATA_BLOBS: blobs.join(' '),
      OCI_RO_DATA_REFERRERS: manifests.join(' '),
    },
  });
  const count = (word: string): string | undefined => new RegExp(`^  ${word}\\.+: +(\\d+)$`, 'm').exec(all)?.[1];
  const failed = Number(count('FAIL')) + Number(count('Error')) + Number(count('Skip'));
  assertSays('oci', `${count('Pass')} passed, ${failed} failed, ${count('Disabled')} disabled`, all);
  for (const [reference, digest] of [
    ['1.2', manifests[0]],
    [manifests[1], manifests[1]],
  ] as const) {
    const { headers } = await fetch(`http://${host}/v2/team/web/manifests/${reference}`, { method: 'HEAD' });
    assert.is(headers.get('docker-content-digest'), digest);
  }
});

test.run();
