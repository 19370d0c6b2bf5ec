import * as assert from '../../support/assert.ts';
import { aliasesOf } from '../../../src/runtime/images/missing-images.ts';
import { suite } from '../../support/suite.ts';

const test = suite('second names of images');

test('each of the two registries of Kubernetes has the names of the other', () => {
  assert.equal(aliasesOf('k8s.gcr.io/pause:3.6'), ['registry.k8s.io/pause:3.6']);
  assert.equal(aliasesOf('registry.k8s.io/sig-storage/csi:v1'), ['k8s.gcr.io/sig-storage/csi:v1']);
  const pinned = `k8s.gcr.io/pause@sha256:${'0'.repeat(64)}`;
  assert.equal(aliasesOf(pinned), [pinned.replace('k8s.gcr.io', 'registry.k8s.io')]);
});

test('coredns is also known without its folder', () => {
  assert.equal(aliasesOf('k8s.gcr.io/coredns/coredns:v1.8.6'), [
    'registry.k8s.io/coredns/coredns:v1.8.6',
    'registry.k8s.io/coredns:v1.8.6',
  ]);
  assert.equal(aliasesOf('k8s.gcr.io/coredns:1.6.2'), ['registry.k8s.io/coredns:1.6.2']);
  assert.equal(aliasesOf('registry.k8s.io/coredns:1.6.2'), ['k8s.gcr.io/coredns:1.6.2']);
});

test('other images have no second names, and what is no name neither', () => {
  for (const name of [
    'docker.io/coredns/coredns:1',
    'eu.gcr.io/k8s.gcr.io/x:1',
    'k8s.gcr.io.evil.test/x:1',
    '--force',
    '',
  ]) {
    assert.equal(aliasesOf(name), [], name);
  }
});

test.run();
