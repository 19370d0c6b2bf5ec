import { helmImages, imageOverrides, isAllowedRegistry } from '../../../src/ship/bundle/image-overrides.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/bundle/image-overrides');

function overrides(entries: unknown, more: readonly string[] = []): readonly string[] {
  const ekco = `  ekco: {version: latest, podImageOverrides: ${JSON.stringify(entries)}}\n`;
  const { installer } = parseInstaller(
    'i.yaml',
    `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${ekco}`,
  );
  if (installer === undefined) throw new Error('the spec of the test is wrong');
  return imageOverrides(installer, more);
}

for (const [host, allowed] of [
  ['docker.io', true],
  ['gcr.io', true],
  ['eu.gcr.io', true],
  ['me.azurecr.io', true],
  ['GHCR.io', true],
  ['ttl.sh', true],
  ['123456789012.dkr.ecr.us-east-1.amazonaws.com', true],
  ['123456789012.dkr.ecr.eu-west-1.amazonaws.com', false],
  ['evil.amazonaws.com', false],
  ['x.dkr.ecr.us-east-1.amazonaws.com.evil.example', false],
  ['notgcr.io', false],
  ['gcr.io.evil.example', false],
  ['quay.io', false],
  ['registry.example.com', true],
  ['deep.registry.example.com', true],
  ['registry.example.com:5000', true],
  ['other.example:5000', true],
  ['other.example', false],
] as const) {
  test(`${host} may ${allowed ? '' : 'not '}be named`, () => {
    assert.is(isAllowedRegistry(host, ['registry.example.com', 'other.example:5000']), allowed);
  });
}

test('the images of helm.additionalImages are found, each once', () => {
  const text =
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n  helm: {additionalImages: [me/a, ghcr.io/b:1, me/a]}\n';
  const { installer } = parseInstaller('i.yaml', text);
  assert.equal(installer && helmImages(installer, []), ['docker.io/me/a:latest', 'ghcr.io/b:1']);
});

test('the images that take the place of others are found, each once', () => {
  const found = overrides(['a/b:1=ghcr.io/me/b:2', 'a/c:1=ghcr.io/me/b:2', 'nginx = me/nginx:1']);
  assert.equal(found, ['ghcr.io/me/b:2', 'docker.io/me/nginx:1']);
  assert.equal(overrides([]), []);
});

test('overrides that are none, and registries that are not allowed, are told all at once', () => {
  const wrong = ['no-equals', 'a=b=c', 'a=', '=b', 'a=UPPER/x', 'a=quay.io/b:1'];
  const error = assert.throwsWith(() => overrides(wrong), 'SPEC_INVALID', /quay\.io is not an allowed registry/);
  assert.is(error.diagnostics.length, wrong.length);
  assert.is(error.diagnostics[0]?.place.line, 4);
  assert.equal(overrides(['a=quay.io/b:1'], ['quay.io']), ['quay.io/b:1']);
});

test.run();
