import { parseManifest } from '../../../src/manifest/parse.ts';
import { planManifest } from '../../../src/manifest/directives.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/directives/image');

test('a path is an archive of an image, which can be named, anything else a reference as it is written', () => {
  const { manifest, diagnostics } = parseManifest(
    'M',
    'image a ./a.tar\nimage b Example.com:5000/b:1 no_remote_load\nimage c ./c.tar c:1 no_remote_load\n',
  );
  assert.equal(diagnostics, []);
  assert.equal(JSON.parse(JSON.stringify(planManifest(manifest))), [
    { kind: 'image', id: 'a', archive: './a.tar', remoteLoad: true },
    { kind: 'image', id: 'b', reference: 'Example.com:5000/b:1', remoteLoad: false },
    { kind: 'image', id: 'c', reference: 'docker.io/library/c:1', archive: './c.tar', remoteLoad: false },
  ]);
});

test('images come before assets in a plan, each in the order of the Manifest', () => {
  const text = 'asset f ./f\nimage z a/z:1\nyum9 p\nimage y a/y:1\n';
  const steps = planManifest(parseManifest('M', text).manifest);
  assert.equal(
    steps.map((step) => ('id' in step ? step.id : step.kind)),
    ['z', 'y', 'asset', 'os-packages'],
  );
});

test('two names for one image are found, however they are written', () => {
  const { diagnostics } = parseManifest('M', 'image a nginx:1\nimage b docker.io/library/nginx:1\n');
  assert.equal(
    diagnostics.map(({ code, place: { line } }) => [code, line]),
    [['image/duplicate-image', 2]],
  );
});

test.run();
