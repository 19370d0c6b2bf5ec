import * as assert from '../../support/assert.ts';
import { imageLines } from '../../../src/manifest/scaffold/image-lines.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/image-lines');

const DIGEST = `sha256:${'0123456789ab'.padEnd(64, '0')}`;

test('the id is the last part of the name, lines are sorted by reference', () => {
  assert.equal(imageLines(['quay.io/b/y:2', 'a/x:1', 'quay.io/b/y:2']), ['image x a/x:1', 'image y quay.io/b/y:2']);
});

test('two spellings of one image are one', () => {
  assert.equal(imageLines(['nginx:1', 'docker.io/library/nginx:1', 'docker.io/nginx:1']), [
    'image nginx docker.io/library/nginx:1',
  ]);
});

test('names that end alike get the part before it', () => {
  assert.equal(imageLines(['quay.io/ceph/ceph:v17', 'rook/ceph:v1', 'quay.io/x/y:1']), [
    'image ceph-ceph quay.io/ceph/ceph:v17',
    'image y quay.io/x/y:1',
    'image rook-ceph rook/ceph:v1',
  ]);
});

test('what still is alike gets its tag, or the beginning of its digest', () => {
  assert.equal(imageLines(['a/x:1', 'a/x:2', `a/x@${DIGEST}`]), [
    'image a-x-1 a/x:1',
    'image a-x-2 a/x:2',
    `image a-x-0123456789ab a/x@${DIGEST}`,
  ]);
});

test('the same below two hosts gets numbers', () => {
  assert.equal(imageLines(['one.example/x:1', 'two.example/x:1']), [
    'image x-1 one.example/x:1',
    'image x-1-2 two.example/x:1',
  ]);
});

test('what is no reference is left out', () => {
  assert.equal(imageLines(['A B', '', 'ok:1']), ['image ok ok:1']);
});

test.run();
