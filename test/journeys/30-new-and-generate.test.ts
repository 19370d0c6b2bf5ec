/** From the YAML of somebody's project to an installed add-on, and to its next version, as its author would go. */
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk, startCurlew } from '../support/curlew.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { missing, unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

// not fast: starts the command again and again
const test = suite('a new add-on and its next version', { timeoutMs: 120_000 });
const withCurl = unless(missing('curl'), test);

function upstreamYaml(version: string): string {
  return `apiVersion: v1
kind: Namespace
metadata:
  name: web
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: web
spec:
  selector:
    matchLabels: { app: web }
  template:
    metadata:
      labels: { app: web }
    spec:
      containers:
        - name: web
          image: registry.example/web:${version}
        - name: side
          image: registry.example/side:1
`;
}

const SPEC = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: journey
spec:
  web:
    version: latest
    replicas: 3
`;

/** Writes down what it is asked; everything that it is asked for is there and runs. */
const KUBECTL = `#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$KUBECTL_LOG"
if [[ "$1" == get ]]; then echo 'Deployment web web <none>'; fi
`;

const image = makeImage([makeLayer({ 'bin/web': binaryLike(50_000, 'web') })]);
const TRIAL = ['--root', 'node', '--unconfined', '--skip-images'];

async function install(box: Tree, ...more: readonly string[]): Promise<readonly string[]> {
  await writeFile(box.at('log'), '');
  const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}`, KUBECTL_LOG: box.at('log') };
  const words = ['install', '--bundle', 'bundle.tar.gz', ...TRIAL, ...more];
  const { exitCode, stderr } = await curlew(words, { cwd: box.path, env });
  assert.is(exitCode, 0, stderr);
  return (await readFile(box.at('log'), 'utf8')).trim().split('\n');
}

withCurl('it is made, linted, built, bundled, installed, and its next version is generated', async () => {
  await using box = await tree({ 'web.yaml': upstreamYaml('1.0'), 'installer.yaml': SPEC, 'bin/kubectl': KUBECTL });
  await using registry = await startRegistry({ 'web:1.0': image, 'web:1.1': image, 'side:1': image });
  await using upstream = await serveFiles({ newest: '{"tag_name": "v1.1"}', 'v1.1/web.yaml': upstreamYaml('1.1') });
  const at = { cwd: box.path };
  const said = await curlewOk(
    ['new', 'web', '--from', 'web.yaml', '--version', '1.0']
      .concat(['--upstream', `${upstream.url}/v{version}/web.yaml`])
      .concat(['--newest', `${upstream.url}/newest`]),
    at,
  );
  assert.match(said, /created addons\/web, version 1\.0/);
  assert.match(said, /lint: 0 errors, 0 warnings/);
  assert.match(await curlewOk(['lint'], at), /1 add-on, 0 errors, 0 warnings/);
  const mirror = ['--registry-mirror', `registry.example=${registry.host}`];
  await curlewOk(['publish', 'web', '--to', 'store', '--release', 'r1', ...mirror], at);
  await curlewOk(['bundle', 'installer.yaml', '--from', 'store', '-o', 'bundle.tar.gz'], at);

  const asked = await install(box);
  assert.ok(asked.includes('apply -k ./kustomize/web'), asked.join('\n'));
  assert.ok(asked.some((words) => words.startsWith('--namespace web rollout status Deployment/web')));
  const written = box.at('node/var/lib/curlew/kustomize/web');
  assert.match(await readFile(`${written}/replicas.yaml`, 'utf8'), 'replicas: 3\n');
  const kustomization = await readFile(`${written}/kustomization.yaml`, 'utf8');
  assert.match(kustomization, 'resources:\n- troubleshoot.yaml\n- upstream.yaml\n');
  assert.match(kustomization, 'patches:\n- path: replicas.yaml\n');
  const again = await install(box);
  assert.not.ok(
    again.some((words) => words.startsWith('apply')),
    again.join('\n'),
  );
  await install(box, '--reapply');
  assert.is(await readFile(`${written}/kustomization.yaml`, 'utf8'), kustomization);

  const generated = await curlewOk(['generate', 'web'], { ...at, env: { GITHUB_OUTPUT: box.at('outputs') } });
  assert.match(generated, 'created addons/web/1.1\nlint: 0 errors, 0 warnings');
  assert.is(await readFile(box.at('outputs'), 'utf8'), 'web_version=1.1\n');
  assert.match(await curlewOk(['generate', 'web'], at), /nothing new/);
  assert.match(await curlewOk(['lint'], at), /2 add-ons, 0 errors, 0 warnings/);
  assert.is(await curlewOk(['generate', '--list'], at), 'web');
  await curlewOk(['build', 'web-1.1', ...mirror], at);
});

test('what a generator makes is linted, and an error is the status', async () => {
  await using box = await tree({
    'addons/web/template/generate.sh': '#!/bin/sh\nmkdir ../2\necho "immage a b" >../2/Manifest\n',
  });
  const { exitCode, stdout } = await curlew(['generate', 'web'], { cwd: box.path });
  assert.is(exitCode, 10);
  assert.match(stdout, 'manifest/unknown-directive');
});

test('what is there is not overwritten, and said', async () => {
  await using box = await tree({ 'addons/web/1.0/Manifest': '' });
  const { exitCode, stderr, stdout } = await curlew(['new', 'web'], { cwd: box.path });
  assert.is(exitCode, 24);
  assert.match(stderr, /addons\/web already exists, with 1\.0/);
  assert.match(stderr, /curlew generate web/);
  assert.is(stdout, '');
});

test('Ctrl-C ends the generator and all that it started, with 130', async () => {
  await using box = await tree({
    'addons/web/template/generate.sh': '#!/usr/bin/env bash\nsleep 1000 & echo $! >child; echo started; wait\n',
  });
  const child = startCurlew(['generate', 'web'], { cwd: box.path });
  while (!(await readdir(box.at('addons/web/template'))).includes('child')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  await ended;
  assert.is((await child).exitCode, 130);
  const pid = (await readFile(box.at('addons/web/template/child'), 'utf8')).trim();
  const left = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  assert.ok(left === '' || /\) [ZX] /.test(left), left);
});

for (const [title, words, message] of [
  ['new without a name', ['new'], /specify one name/],
  ['a hook that is none', ['new', 'web', '--hooks', 'instal'], /did you mean install\?/],
  ['an address with a password', ['new', 'web', '--upstream', 'https://a:secret@b.example/{version}'], /password/],
  ['generate without a name', ['generate'], /specify one add-on/],
] as const) {
  test(`wrong words are refused: ${title}`, async () => {
    await using box = await tree();
    const { exitCode, stderr } = await curlew(words, { cwd: box.path });
    assert.is(exitCode, 64, stderr);
    assert.match(stderr, message);
    assert.not.match(stderr, 'secret');
    assert.equal(await readdir(box.path), []);
  });
}

test.run();
