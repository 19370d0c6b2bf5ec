import { storeKey } from '../../../src/core/layout.ts';
import { parseRoute, type Route } from '../../../src/ship/serve/route.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/serve/route');

function routeOf(text: string): Route | string {
  const routed = parseRoute(text);
  return typeof routed === 'string' ? routed : routed.route;
}

const AMD = { release: undefined, arch: 'amd64' } as const;

for (const [address, route] of [
  ['/', { kind: 'overview' }],
  ['/healthz', { kind: 'health' }],
  ['/metrics', { kind: 'metrics' }],
  ['/dist/VERSION', { kind: 'current-release' }],
  ['/dist/r1/flannel-0.28.7.tar.gz', { kind: 'object', key: 'r1/flannel-0.28.7.tar.gz' }],
  ['/dist/r1/index.json', { kind: 'object', key: 'r1/index.json' }],
  ['/dist/channels/stable.yaml', { kind: 'object', key: 'channels/stable.yaml' }],
  ['/dist/r1/channels/stable.yaml', { kind: 'object', key: 'r1/channels/stable.yaml' }],
  ['/dist/VERSION.sigstore.json', { kind: 'object', key: storeKey.versionSignature }],
  ['/dist/r1/index.json.sigstore.json', { kind: 'object', key: storeKey.catalogSignature('r1') }],
  ['/dist/k3s-1.2%2Bk3s1.tar.gz', { kind: 'latest', file: 'k3s-1.2-k3s1.tar.gz' }],
  ['/dist/k3s-1.2+k3s1.tar.gz', { kind: 'latest', file: 'k3s-1.2-k3s1.tar.gz' }],
  ['/bundle/d44632a', { kind: 'bundle', id: 'd44632a', ...AMD }],
  ['/bundle/d44632a.tar.gz', { kind: 'bundle', id: 'd44632a', ...AMD }],
  ['/bundle/d44632a.tar.gz?arch=arm64', { kind: 'bundle', id: 'd44632a', release: undefined, arch: 'arm64' }],
  ['/bundle/version/r1/d44632a.tar.gz', { kind: 'bundle', id: 'd44632a', release: 'r1', arch: 'amd64' }],
  [
    '/bundle/d44632a/packages/rook-1.4.9,kubernetes-1.27.8.tar.gz',
    { kind: 'packages', id: 'd44632a', ...AMD, names: ['rook-1.4.9', 'kubernetes-1.27.8'] },
  ],
  [
    '/bundle/version/r1/d44632a/packages/rook-1.4.9.tar.gz',
    { kind: 'packages', id: 'd44632a', release: 'r1', arch: 'amd64', names: ['rook-1.4.9'] },
  ],
  ['/bundle/d44632a.tar.gz?arch=s390x', { kind: 'unknown-arch', arch: 's390x' }],
  ['/bundle/d44632a/packages/rook-1.4.9.tar.gz?arch=s390x', { kind: 'unknown-arch', arch: 's390x' }],
  ['/bundle.tar.gz?_arch=s390x', { kind: 'unknown-arch', arch: 's390x' }],
  ['/install.sh?_arch=', { kind: 'script', id: undefined, release: undefined, script: 'install.sh' }],
  ['/tool/curlew-linux-s390x.tar.gz', { kind: 'unknown-arch', arch: 's390x' }],
  ['/installer', { kind: 'installers' }],
  ['/installer/validate', { kind: 'validate' }],
  ['/installer/d44632a?resolve', { kind: 'installer', id: 'd44632a', resolve: true }],
  ['/d44632a', { kind: 'script', id: 'd44632a', release: undefined, script: 'install.sh' }],
  ['/d44632a/tasks.sh', { kind: 'script', id: 'd44632a', release: undefined, script: 'tasks.sh' }],
  ['/version/r1/my-app/join.sh', { kind: 'script', id: 'my-app', release: 'r1', script: 'join.sh' }],
  ['/tool/curlew-linux-arm64.tar.gz', { kind: 'tool', arch: 'arm64' }],
  ['/v2/', { kind: 'registry-base' }],
  ['/v2', { kind: 'registry-base' }],
  ['/v2/_catalog', { kind: 'registry-list' }],
  ['/v2/library/nginx/tags/list', { kind: 'tags', name: 'library/nginx', reference: '' }],
  ['/v2/a.example:5000/x/manifests/1', { kind: 'manifest', name: 'a.example:5000/x', reference: '1' }],
  ['/v2/manifests/blobs/sha256:ab', { kind: 'blob', name: 'manifests', reference: 'sha256:ab' }],
] as const satisfies readonly (readonly [string, Route])[]) {
  test(`${address} leads to ${route.kind}`, () => assert.equal(routeOf(address), route));
}

for (const address of [
  '/dist/../installers/x.json',
  '/dist/%2e%2e/x.json',
  '/dist/%2E%2E%2Fx.json',
  '/dist/%252e%252e/x.json',
  '/dist/..%5cx.json',
  '/dist//VERSION',
  '//etc/passwd',
  '/dist/r1/a%00.tar.gz',
  '/dist/r1/a%0d%0a.tar.gz',
  '/dist/r1/%ff.json',
  '/dist/r1/%.json',
  '/bundle/d44632a/packages/../../dist/VERSION',
  '/v2/../dist/VERSION',
  '/v2/a/../../manifests/1',
  'http://other.example/dist/VERSION',
  '*',
  '',
  `/${'a/'.repeat(100)}`,
  `/dist/${'a'.repeat(5000)}.json`,
]) {
  test(`${address.slice(0, 60)} is no address`, () => assert.is(routeOf(address), 'bad'));
}

for (const address of [
  '/dist',
  '/dist/',
  '/dist/r1',
  '/dist/r1/addon/x.json',
  '/dist/r1/.hidden.json',
  '/dist/.curlew/x.json',
  '/dist/VERSION/x.json',
  '/dist/installers/abc.yaml',
  '/dist/channels/stable.json',
  '/dist/r1/channels/x/stable.yaml',
  '/bundle',
  '/bundle/UPPER',
  '/bundle/d44632a/packages/rook-1.4.9',
  '/bundle/version/d44632a',
  '/latest/install.sh',
  '/d44632a/other.sh',
  '/d44632a/install.sh/more',
  '/tool/other.tar.gz',
  '/v2/_catalog/x',
  '/v2/library/nginx',
  '/favicon.ico',
]) {
  test(`${address} is unknown`, () => assert.is(routeOf(address), 'unknown'));
}

test.run();
