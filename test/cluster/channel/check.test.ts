import { createHash } from 'node:crypto';
import { checkManifests } from '../../../src/cluster/channel/check-manifests.ts';
import { checkChannel } from '../../../src/cluster/channel/check.ts';
import type { Channel, Compat } from '../../../src/cluster/channel/channel.ts';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/check');

const OURS = 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nspec:\n  addons:\n';
const KOPS = 'kind: Addons\nspec:\n  addons:\n';

function channelOf(text: string, compat?: Compat): Channel {
  const { channel } = readChannel('/srv/channel.yaml', text, compat);
  assert.ok(channel);
  return channel;
}
const findings = (text: string, compat?: Compat): readonly string[] =>
  checkChannel(channelOf(text, compat)).map(
    ({ place, severity, code, message }) => `${place.line} ${severity} ${code} ${message}`,
  );

test('Kubernetes versions between two ranges that no entry is for are a gap', () => {
  const text = `${OURS}  - {name: a, version: 1.0.0, kubernetesVersion: "<1.28.0", manifest: a.yaml}
  - {name: a, version: 2.0.0, kubernetesVersion: ">=1.30.0 <1.31.0", manifest: b.yaml}
  - {name: a, version: 3.0.0, kubernetesVersion: ">1.31.0", manifest: c.yaml}
`;
  assert.equal(findings(text), [
    '5 warning channel/gap no entry of a is for Kubernetes >=1.28.0 <1.30.0',
    '6 warning channel/gap no entry of a is for Kubernetes 1.31.0',
  ]);
});

test('entries of equal rank that fit the same Kubernetes are found, others are not', () => {
  const text = `${OURS}  - {name: a, version: 1.0.0, kubernetesVersion: "<1.30.0", id: x, manifest: a.yaml}
  - {name: a, version: 1.0.0, kubernetesVersion: ">=1.30.0", id: y, manifest: b.yaml}
  - {name: a, version: 1.1.0, manifest: c.yaml}
  - {name: a, version: 1.0.0, kubernetesVersion: "1.31.x", id: z, manifest: d.yaml}
`;
  const message = 'has the same version as line 6, and both fit Kubernetes >=1.31.0 <1.32.0: the later one wins';
  assert.equal(findings(text), [`8 error channel/tie a 1.0.0 (z) ${message}`]);
});

test('to kops, later entries hide earlier ones, and equal id and hash are the same', () => {
  const text = `${KOPS}  - {name: a, id: x, kubernetesVersion: "1.30.x", manifest: a.yaml}
  - {name: a, id: y, kubernetesVersion: "<1.31.0", manifest: b.yaml}
  - {name: a, id: z, kubernetesVersion: ">=1.30.0", manifest: c.yaml}
  - {name: b, version: 1.0.0, manifest: d.yaml}
  - {name: b, version: 2.0.0, manifest: e.yaml}
`;
  assert.equal(findings(text, 'kops'), [
    '4 warning channel/never a (x) is never chosen: later entries fit wherever it does',
    '8 warning channel/tie b 2.0.0 has the same id and manifestHash as line 7, and both fit every version of Kubernetes: the first one wins',
  ]);
});

test('a range that cannot be read is an error, though kops skips the entry', () => {
  const text = `${KOPS}  - {name: a, kubernetesVersion: ">=1.30", manifest: a.yaml}\n`;
  assert.equal(findings(text, 'kops'), ['4 error channel/range a is never chosen: its range cannot be read']);
});

test('what is required must be in the channel, or be installed otherwise', () => {
  const text = `${OURS}  - {name: a, version: 1.0.0, manifest: a.yaml, requires: [{name: b, version: ">=2.0.0"}, {name: c}, {name: b}]}
  - {name: b, version: 1.0.0, manifest: b.yaml}
`;
  assert.equal(findings(text), [
    '5 error channel/requires a 1.0.0 requires b >=2.0.0, and no entry is such a version',
    '5 warning channel/requires a 1.0.0 requires c, which this channel does not have',
  ]);
});

test('a circle of requirements is found, and not where an alternative leads out of it', () => {
  const text = `${OURS}  - {name: a, version: 1.0.0, manifest: a.yaml, requires: [{name: b}]}
  - {name: b, version: 1.0.0, manifest: b.yaml, requires: [{name: c, version: ">=1.0.0"}]}
  - {name: c, version: 1.0.0, manifest: c.yaml, requires: [{name: a}]}
  - {name: d, version: 1.0.0, manifest: d.yaml, requires: [{name: a}]}
  - {name: e, version: 1.0.0, manifest: e.yaml, requires: [{name: e}]}
`;
  assert.equal(findings(text), [
    '5 error channel/circle a 1.0.0 requires b 1.0.0, which requires c 1.0.0, which requires a 1.0.0: none of them can be first',
    '9 error channel/circle e 1.0.0 requires e 1.0.0: none of them can be first',
  ]);
  const out = '  - {name: c, version: 1.1.0, manifest: c.yaml}\n  - {name: e, version: 1.1.0, manifest: e.yaml}\n';
  assert.equal(findings(text + out), []);
  const other = '  - {name: e, version: 1.1.0, manifest: e.yaml, kubernetesVersion: "<1.20.0"}\n';
  const narrowed = text.replaceAll(', manifest: e', ', kubernetesVersion: ">=1.30.0", manifest: e');
  assert.equal(findings(narrowed + other).filter((found) => found.includes('channel/circle')).length, 2);
});

test('a long chain of requirements is no circle, and a large knot of them is one', () => {
  const entry = (name: string, version: number, needed: string): string =>
    `  - {name: ${name}, version: 1.${version}.0, manifest: a.yaml, requires: [{name: ${needed}}]}\n`;
  const numbers = Array.from({ length: 1000 }, (_, at) => at);
  const chain = numbers.map((at) => entry(`a${at}`, 0, `a${at + 1}`)).join('');
  assert.equal(findings(`${OURS}${chain}  - {name: a1000, version: 1.0.0, manifest: a.yaml}\n`), []);
  const knot = numbers.map((at) => (at % 2 === 0 ? entry('a', at, 'b') : entry('b', at, 'a'))).join('');
  assert.equal(findings(OURS + knot), [
    '5 error channel/circle a 1.0.0 requires b 1.1.0, which requires a 1.0.0: none of them can be first',
  ]);
});

test('the mistakes of a manifest are in the manifest, and a few of many are shown', async ({ signal }) => {
  const pod = (name: string): string => `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\n---\n`;
  const check = async (content: string | Uint8Array, head = OURS): Promise<readonly string[]> => {
    const channel = channelOf(`${head}  - {name: a, version: 1.0.0, manifest: a.yaml}\n`);
    const found = await checkManifests(channel, async () => Promise.resolve(Buffer.from(content)), { signal });
    return found
      .filter(({ code }) => code !== 'channel/hash')
      .map(({ place, severity, code }) => `${place.file}:${place.line} ${severity} ${code}`);
  };
  assert.equal(await check(pod('a') + pod('b')), []);
  assert.equal(await check(pod('a') + pod('b') + pod('a')), ['/srv/a.yaml:11 error manifest/duplicate']);
  const own = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: curlew-addons, namespace: kube-system}\n';
  assert.equal(await check(own), ['/srv/a.yaml:3 error manifest/own']);
  assert.equal(await check(own.replace('kube-system', 'sites')), []);
  const annotated = (kind: string): string =>
    `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: sites\n  annotations:\n    addons.k8s.io/web: '{}'\n`;
  assert.equal(await check(annotated('Namespace')), ['/srv/a.yaml:6 error manifest/own']);
  assert.equal(await check(annotated('ConfigMap')), []);
  const secret = (field: string): string =>
    `apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n${field}: {pin: MTIz}\n`;
  assert.equal(await check(secret('stringData')), ['/srv/a.yaml:3 warning manifest/string-data']);
  assert.equal(await check(secret('data')), []);
  assert.equal(await check('- a\n'), ['/srv/a.yaml:1 error manifest/object']);
  assert.equal(await check('# nothing\n'), ['/srv/a.yaml:1 error manifest/empty']);
  assert.equal(await check('# nothing\n', KOPS), ['/srv/a.yaml:1 warning manifest/empty']);
  assert.equal(await check(Buffer.from([0xff, 0xfe])), ['/srv/a.yaml:1 error manifest/text']);
  assert.equal((await check('a: [')).at(0)?.split(' ').at(-1), 'yaml/syntax');
  const bomb = Array.from(
    { length: 20 },
    (_, at) => `a${at}: &a${at} [${`*a${at - 1}, `.repeat(at === 0 ? 0 : 9)}x]\n`,
  );
  assert.equal(await check(bomb.join('')), ['/srv/a.yaml:1 error yaml/aliases']);
  const many = await check('apiVersion: v1\n---\n'.repeat(50));
  assert.equal([many.length, many.at(-1)?.split(' ').at(-1)], [21, 'manifest/more']);
});

test('manifests are read once: missing ones, missing hashes and wrong hashes are found', async ({ signal }) => {
  const [a, b] = ['A', 'B'].map((kind) => `apiVersion: v1\nkind: ${kind}\nmetadata: {name: x}`);
  const files: Readonly<Record<string, string>> = { '/srv/a.yaml': `\n${a}\n\n`, '/srv/b.yaml': `${b}\n` };
  const asked: string[] = [];
  const check = async (text: string, compat?: Compat): Promise<readonly string[]> => {
    const read = async (location: string): Promise<Uint8Array | undefined> => {
      asked.push(location);
      if (location.endsWith('/bad.yaml')) throw new Error('permission denied');
      const content = files[location];
      return Promise.resolve(content === undefined ? undefined : Buffer.from(content));
    };
    const found = await checkManifests(channelOf(text, compat), read, { signal });
    return found.map(({ place, severity, code, message }) => `${place.line} ${severity} ${code} ${message}`);
  };
  const hash = (algorithm: string, text = ''): string => createHash(algorithm).update(text).digest('hex');
  const [sha1, sha256] = [hash('sha1', a), hash('sha256', a)];
  assert.equal(
    await check(`${KOPS}  - {name: a, manifest: a.yaml, manifestHash: ${sha256}}
  - {name: b, manifest: a.yaml, manifestHash: "${sha1}"}
  - {name: c, manifest: b.yaml}
  - {name: d, manifest: b.yaml, manifestHash: ${sha256}}
  - {name: e, manifest: no.yaml}
  - {name: f, manifest: bad.yaml}
`),
    [
      '6 warning channel/hash c has no manifestHash: a change of its manifest is applied unverified',
      `7 error channel/hash d: /srv/b.yaml has the hash ${hash('sha256', b)}, not ${sha256}`,
      '8 error channel/file e: /srv/no.yaml does not exist',
      '9 error channel/file f: cannot read /srv/bad.yaml: permission denied',
    ],
  );
  assert.equal(asked.toSorted(), ['/srv/a.yaml', '/srv/b.yaml', '/srv/bad.yaml', '/srv/no.yaml']);
  assert.equal(await check(`${KOPS}  - {name: c, manifest: a.yaml}\n`, 'kops'), [
    '4 warning channel/hash c has no manifestHash: a change of its manifest is not noticed',
  ]);
  const whole = hash('sha256', files['/srv/a.yaml'] ?? '');
  assert.equal(await check(`${OURS}  - {name: a, version: 1.0.0, manifest: a.yaml, hash: "sha256:${whole}"}\n`), []);
});

test.run();
