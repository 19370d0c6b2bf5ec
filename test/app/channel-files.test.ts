/** Channels and their manifests, read from every kind of place. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { openChannels, type ChannelFiles } from '../../src/steps/open/channel-files.ts';
import type { Channel, Entry } from '../../src/cluster/channel/channel.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cleanEnvironment } from '../support/curlew.ts';
import { withVariables } from '../support/environment.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { serveFiles, startServer, type Reply } from '../support/web-server.ts';
import type { ChannelsRequest } from '../../src/requests/channel.ts';

const test = suite('app/channel-files', { timeoutMs: 30_000 });

const MANIFEST = '\nkind: Service\napiVersion: v1\nmetadata: {name: web}\n';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const ours = (hash: string, manifest = 'sub/web.yaml'): string => `apiVersion: fleet.curlew.dev/v1alpha1
kind: Channel
spec:
  addons:
  - {name: web, version: 1.0.0, manifest: "${manifest}", hash: "sha256:${hash}"}
`;
const kops = (hash: string): string => `kind: Addons
spec:
  addons:
  - {name: web, version: 1.0.0, manifest: sub/web.yaml, manifestHash: ${hash}}
`;
// The SDK reads credentials from the process alone.
const keys = withVariables({
  AWS_ACCESS_KEY_ID: 'key',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
});
test.after(() => {
  keys[Symbol.dispose]();
});

async function open(box: Tree, request: ChannelsRequest): Promise<ChannelFiles> {
  const env = cleanEnvironment({ cwd: box.path, env: { AWS_REGION: 'us-east-1' } });
  return openChannels(request, { cwd: box.path, env, report: noReport, signal: never });
}

function only({ channels: [first] }: ChannelFiles): { readonly channel: Channel; readonly entry: Entry } {
  if (first?.error !== undefined) throw first.error;
  const [entry] = first?.channel?.entries ?? [];
  if (first?.channel === undefined || entry === undefined) throw new Error('no entry');
  return { channel: first.channel, entry };
}

async function manifestOf(files: ChannelFiles): Promise<string> {
  const { channel, entry } = only(files);
  return Buffer.from(await files.readManifest(channel, entry, { signal: never })).toString();
}

test('a relative manifest is beside its channel, at a path and at a file: URL', async () => {
  await using box = await tree({ 'a b/channel.yaml': ours(sha256(MANIFEST)), 'a b/sub/web.yaml': MANIFEST });
  for (const location of ['a b/channel.yaml', box.at('a b/channel.yaml'), `file://${box.path}/a%20b/channel.yaml`]) {
    await using files = await open(box, { channels: [location] });
    assert.is(await manifestOf(files), MANIFEST, location);
  }
});

test('hashes of kops are of the trimmed manifest, and SHA-1 in old indexes', async () => {
  const sha1 = createHash('sha1').update(MANIFEST.trim()).digest('hex');
  await using box = await tree({ 'sub/web.yaml': MANIFEST });
  for (const hash of [sha256(MANIFEST.trim()), sha1]) {
    await writeFile(box.at('index.yaml'), kops(hash));
    await using files = await open(box, { channels: ['index.yaml'], compat: 'kops' });
    assert.is(await manifestOf(files), MANIFEST);
  }
});

test('a manifest with another hash is refused, and so is one that does not exist', async () => {
  await using box = await tree({
    'other.yaml': ours(sha256('other')),
    'none.yaml': ours(sha256(MANIFEST), 'none'),
    'sub/web.yaml': MANIFEST,
  });
  await using other = await open(box, { channels: ['other.yaml'] });
  await assert.rejectsWith(
    manifestOf(other),
    'DIGEST_MISMATCH',
    /sub\/web\.yaml: its hash is .*, not .* of web 1\.0\.0$/,
  );
  await using none = await open(box, { channels: ['none.yaml'] });
  await assert.rejectsWith(manifestOf(none), 'NOT_FOUND', /manifest of web 1\.0\.0, none: it does not exist/);
});

test('a channel that cannot be read does not stop the others', async () => {
  await using box = await tree({
    'good.yaml': ours(sha256(MANIFEST)),
    'broken.yaml': 'kind: [',
    'typo.yaml': 'kind: Addon',
  });
  const channels = [
    'missing.yaml',
    'broken.yaml',
    'typo.yaml',
    'gs://bucket/c.yaml',
    's3://bucket',
    'file://host/x',
    'good.yaml',
  ];
  await using files = await open(box, { channels });
  assert.equal(
    files.channels.map(({ channel, error }) => [channel?.entries.length, error?.code]),
    [
      [undefined, 'NOT_FOUND'],
      [undefined, 'MANIFEST_INVALID'],
      [undefined, 'MANIFEST_INVALID'],
      [undefined, 'UNSUPPORTED'],
      [undefined, 'USAGE'],
      [undefined, 'USAGE'],
      [1, undefined],
    ],
  );
  assert.match(files.channels[2]?.error?.hint ?? '', 'curlew channel check typo.yaml shows the lines');
});

test('a web server may be busy for a moment, and its passwords stay out of messages', async () => {
  let isBusy = true;
  await using server = await serveFiles(
    { 'c/channel.yaml': ours(sha256(MANIFEST)), 'c/sub/web.yaml': MANIFEST, 'bad.yaml': 'kind: [' },
    {
      faults: [
        () => {
          if (!isBusy) return undefined;
          isBusy = false;
          return { status: 503, headers: { 'retry-after': '0' } };
        },
      ],
    },
  );
  await using box = await tree();
  const base = server.url.replace('://', '://user:hunter2@');
  await using files = await open(box, { channels: [`${base}/c/channel.yaml`, `${base}/bad.yaml?sig=hunter3`] });
  assert.is(await manifestOf(files), MANIFEST);
  assert.ok(
    server.log.every(({ headers }) => headers['authorization'] !== undefined),
    'the manifest is asked for likewise',
  );
  const [first, second] = files.channels;
  const shown = JSON.stringify([first?.location, second?.location, second?.diagnostics, second?.error?.message]);
  assert.not.match(shown, /hunter/);
  assert.match(shown, 'cannot use ');
});

test('what a web server has not, refuses or sends without end is an error of this channel alone', async () => {
  const sending: Reply = { status: 200, headers: { 'content-length': String(1 << 30) }, body: '' };
  await using server = await startServer(({ path }) =>
    path === '/big.yaml' ? sending : { status: path === '/secret.yaml' ? 403 : 404, body: 'no' },
  );
  await using box = await tree();
  const channels = ['big', 'secret', 'none'].map((name) => `${server.url}/${name}.yaml`);
  await using files = await open(box, { channels: [...channels, 'http://example.com/c.yaml'] });
  assert.equal(
    files.channels.map(({ error }) => error?.code),
    ['FETCH_FAILED', 'AUTH_FAILED', 'NOT_FOUND', 'FETCH_FAILED'],
  );
  assert.match(files.channels[3]?.error?.hint ?? '', '--allow-http example.com');
});

test('a channel from another machine names no file of this one', async () => {
  await using box = await tree({ 'web.yaml': MANIFEST });
  await using server = await serveFiles({ 'c.yaml': MANIFEST });
  await using files = await open(box, { channels: [`${server.url}/c.yaml`] });
  const { channel } = only(files);
  const read = files.reader(channel);
  await assert.rejectsWith(
    read(`file://${box.path}/web.yaml`, { signal: never }),
    'UNSUPPORTED',
    /not on this machine/,
  );
  await assert.rejectsWith(read('s3://private/web.yaml', { signal: never }), 'UNSUPPORTED', /not in this bucket/);
});

test('objects in S3 are channels and manifests', async () => {
  const objects: Readonly<Record<string, string>> = {
    '/bucket/dir/channel.yaml': ours(sha256(MANIFEST), '../shared/web 1.yaml'),
    '/bucket/shared/web%201.yaml': MANIFEST,
  };
  await using server = await startServer(({ path }) => {
    const body = objects[path.split('?')[0] ?? ''];
    if (body !== undefined) return { status: 200, headers: { etag: '"1"' }, body };
    return { status: 404, body: '<Error><Code>NoSuchKey</Code><Message>none</Message></Error>' };
  });
  await using box = await tree();
  const request = { channels: ['s3://bucket/dir/channel.yaml', 's3://bucket/dir/none.yaml'], s3Endpoint: server.url };
  await using files = await open(box, request);
  assert.is(await manifestOf(files), MANIFEST);
  assert.is(files.channels[1]?.error?.code, 'NOT_FOUND');
  const services = `[services local]\ns3 =\n  endpoint_url = ${server.url}\n`;
  await writeTree(box.path, { '.aws/config': `[default]\nservices = local\nregion = eu-west-3\n${services}` });
  await using named = await open(box, { channels: ['s3://bucket/dir/channel.yaml'] });
  assert.is(named.channels[0]?.error?.message, undefined);
});

test.run();
