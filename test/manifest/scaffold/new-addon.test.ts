import { execa } from 'execa';
import { chmod, readdir, readFile, stat } from 'node:fs/promises';
import { findAddons } from '../../../src/manifest/find-addons.ts';
import { lintAddons } from '../../../src/manifest/lint.ts';
import * as assert from '../../support/assert.ts';
import { newIn, RESOURCES, runGenerator } from '../../support/scaffold.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('scaffold/new-addon');

const POD = 'apiVersion: v1\nkind: Pod\nmetadata: { name: a }\nspec: { containers: [{ name: a, image: a/a:1 }] }\n';

/** Findings of lint that people see. */
async function lintedIn({ path }: Tree, signal: AbortSignal): Promise<readonly string[]> {
  const found = await findAddons(path, [], { signal });
  const searchPath = process.env['PATH'] ?? '';
  const { diagnostics } = await lintAddons(found, { complete: true, shellcheck: true, searchPath, signal });
  const seen = diagnostics.filter(({ severity }) => severity !== 'info');
  return seen.map(({ code, message, place }) => `${place.file}:${place.line} ${code} ${message}`);
}

async function textsBelow(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { withFileTypes: true });
  const read = entries.map(async ({ name }) => [name, await readFile(`${folder}/${name}`, 'utf8')] as const);
  return Object.fromEntries(await Promise.all(read));
}

test('an add-on from nothing passes lint, with all that one for production has', async ({ signal }) => {
  await using box = await tree({
    '.curlew-lint.json': JSON.stringify({ rules: { 'production/*': 'error' } }),
  });
  const made = await newIn(box);
  assert.equal(await lintedIn(box, signal), []);
  assert.ok(made.files.includes('1.0.0/schema.json') && made.files.includes('template/generate.sh'));
  assert.equal(made.settings, ['replicas']);
  assert.is((await stat(box.at('addons/web/template/generate.sh'))).mode & 0o111, 0o111);
  assert.is(await readFile(box.at('addons/web/1.0.0/Manifest'), 'utf8'), 'image pause registry.k8s.io/pause:3.10\n');
  const install = await readFile(box.at('addons/web/1.0.0/install.sh'), 'utf8');
  const deletions = install.split('\n').filter((line) => /^ +(?:if ! )?kubectl .*\bdelete\b/.test(line));
  // Otherwise a pod on a node that is gone would hold up a reset for ever.
  assert.is(deletions.filter((line) => /--timeout=|--wait=false/.test(line)).length, 2, deletions.join('\n'));
  assert.is(deletions.length, 2);
});

test('the command of docs/addons.md turns on the lines of install.sh for a setting of another object', async () => {
  const [, edit = ''] = /^(sed .*) install\.sh$/m.exec(await readFile('docs/addons.md', 'utf8')) ?? [];
  const config = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: greeting }\ndata: { text: hello }\n';
  for (const [upstream, listed] of [
    [config, /^ +printf 'patches:\\n- path: greeting\.yaml\\n' >>/m],
    [RESOURCES.slice(RESOURCES.indexOf('---\n') + 4), /^ +patches\+=\(greeting\.yaml\)$/m],
  ] as const) {
    await using box = await tree({ 'web.yaml': upstream });
    await newIn(box, { from: 'web.yaml', hasTemplate: false });
    const install = box.at('addons/web/1.0.0/install.sh');
    await execa('bash', ['-euc', `${edit} "$1" && bash -n "$1"`, 'bash', install]);
    const text = await readFile(install, 'utf8');
    assert.match(text, /^ +render_yaml_file_2 "\$src\/tmpl-greeting\.yaml" >"\$dst\/greeting\.yaml"$/m);
    assert.match(text, listed);
  }
});

test('an add-on without a template has ten files or fewer, none of which uses a deprecated field', async ({
  signal,
}) => {
  await using box = await tree({ 'web.yaml': RESOURCES.slice(RESOURCES.indexOf('---\n') + 4) });
  const { files } = await newIn(box, { from: 'web.yaml', hasTemplate: false });
  assert.ok(files.length <= 10, files.join(' '));
  assert.equal(
    files.filter((file) => !file.startsWith('1.0.0/')),
    [],
  );
  assert.equal(await lintedIn(box, signal), []);
  for (const text of Object.values(await textsBelow(box.at('addons/web/1.0.0')))) {
    assert.not.match(text, /patchesStrategicMerge|patches_strategic|patchesJson6902|commonLabels|^bases:/m);
  }
});

test('an add-on from resources passes lint and lists every image once', async ({ signal }) => {
  await using box = await tree({ 'web.yaml': RESOURCES });
  const made = await newIn(box, { from: 'web.yaml', hooks: ['all'] });
  assert.equal(await lintedIn(box, signal), []);
  assert.equal(
    made.images.map((line) => line.split(' ')[1]),
    ['busybox', 'agent', 'ceph-ceph', 'pinned', 'reloader', 'rook-ceph', 'side', 'tool', 'web'],
  );
  assert.is(made.namespace, 'web-system');
  const { definitions, upstream } = {
    definitions: await readFile(box.at('addons/web/1.0.0/crds.yaml'), 'utf8'),
    upstream: await readFile(box.at('addons/web/1.0.0/upstream.yaml'), 'utf8'),
  };
  assert.match(definitions, 'CustomResourceDefinition');
  assert.not.match(upstream, 'CustomResourceDefinition');
});

test('the generator of its template makes the same version again, byte for byte', async () => {
  await using box = await tree({ 'web.yaml': RESOURCES });
  await newIn(box, { from: 'web.yaml' });
  const before = await textsBelow(box.at('addons/web/1.0.0'));
  await runGenerator(box, 'web', ['--version=1.0.0', `--from=${box.at('web.yaml')}`, '--force']);
  assert.equal(await textsBelow(box.at('addons/web/1.0.0')), before);
  assert.equal((await readdir(box.at('addons/web/template'))).toSorted(), ['base', 'generate.sh', 'testgrid']);
});

for (const hooks of ['install', 'install,post_init', 'join', 'pre_init,outro', 'uninstall,already_applied']) {
  test(`any choice of hooks passes lint: ${hooks}`, async ({ signal }) => {
    await using box = await tree({ 'pod.yaml': POD });
    await newIn(box, { from: 'pod.yaml', hooks: [hooks] });
    assert.equal(await lintedIn(box, signal), []);
    const script = await readFile(box.at('addons/web/1.0.0/install.sh'), 'utf8');
    for (const hook of hooks.split(',')) assert.match(script, `web${hook === 'install' ? '' : `_${hook}`}() {`);
    assert.not.match(script, /\[(?:if|each|end)|sample/);
  });
}

for (const [title, from] of [
  ['with settings', 'deployment.yaml'],
  ['without settings', 'pod.yaml'],
] as const) {
  test(`pre_init of a new add-on ${title} announces nothing: it also runs where nothing is installed then`, async () => {
    const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: 1 }\n';
    await using box = await tree({ 'deployment.yaml': deployment, 'pod.yaml': POD });
    await newIn(box, { from, hooks: ['pre_init'] });
    const tell = 'log() { echo "log: $*"; }; bail() { echo "bail: $*"; exit 1; }';
    const code = `set -euo pipefail; ${tell}; DIR=.; . addons/web/1.0.0/install.sh; web_pre_init`;
    const { stdout } = await execa('bash', ['-c', code], { cwd: box.path });
    assert.is(stdout, '');
    if (from === 'pod.yaml') return;
    const wrong = await execa('bash', ['-c', `WEB_REPLICAS=x; ${code}`], { cwd: box.path, reject: false });
    assert.match(wrong.stdout, /^bail: web: \w+ "x" is not a number$/);
  });
}

for (const name of ['cert-manager', 'a.b_c', '9lives', 'x']) {
  test(`names of every shape pass lint and are sourced by bash: ${name}`, async ({ signal }) => {
    await using box = await tree();
    await newIn(box, { name, hooks: ['all'], version: '2025-10-15T17-29-55Z' });
    assert.equal(await lintedIn(box, signal), []);
    const script = box.at('addons', name, '2025-10-15T17-29-55Z/install.sh');
    const { stdout } = await execa('bash', ['-c', `set -e; DIR=. ; . "$1"; declare -F`, 'bash', script]);
    assert.match(stdout, `declare -f ${name}_pre_init`);
  });
}

test('each Deployment has a setting of its own where there are several', async ({ signal }) => {
  const deployment = (name: string): string =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: ${name} }\nspec: { replicas: 1 }\n`;
  await using box = await tree({ 'a.yaml': ['web', 'web-hook', 'other'].map(deployment).join('---\n') });
  const made = await newIn(box, { from: 'a.yaml' });
  assert.equal(made.settings, ['webReplicas', 'hookReplicas', 'otherReplicas']);
  assert.equal(await lintedIn(box, signal), []);
  assert.match(await readFile(box.at('addons/web/1.0.0/install.sh'), 'utf8'), 'WEB_HOOK_REPLICAS');
  assert.match(await readFile(box.at('addons/web/1.0.0/tmpl-hook-replicas.yaml'), 'utf8'), 'name: web-hook');
  assert.match(await readFile(box.at('addons/web/1.0.0/kustomization.yaml'), 'utf8'), 'namespace: web\n');
});

test('objects without a namespace among others that name one are told', async () => {
  const object = (place: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a${place} }\n`;
  await using box = await tree({ 'a.yaml': `${object('')}---\n${object(', namespace: x')}` });
  const { notes } = await newIn(box, { from: 'a.yaml' });
  assert.match(notes.join('\n'), '1 object names no namespace');
  assert.match(notes.join('\n'), 'the Manifest is empty');
});

for (const [title, files, named] of [
  ['a version of it', { 'addons/web/0.9.0/Manifest': '' }, '0.9.0'],
  ['a file of its name', { 'addons/web': '' }, 'addons/web'],
] as const) {
  test(`nothing is overwritten: ${title}`, async () => {
    await using box = await tree(files);
    await assert.rejectsWith(newIn(box), 'FILE_EXISTS', new RegExp(named));
    const kept = await readdir(box.path, { recursive: true, withFileTypes: true });
    assert.equal(kept.filter((entry) => entry.isFile()).length, 1);
    assert.equal(await readdir(box.path), ['addons']);
  });
}

test('bad input leaves nothing behind', async () => {
  await using box = await tree({ 'bad.yaml': 'a: [\n', 'folder/x': '', 'tags.yaml': `${POD}---\nx: 1\n` });
  const before = await readdir(box.path);
  await assert.rejectsWith(newIn(box, { from: 'bad.yaml' }), 'MANIFEST_INVALID');
  await assert.rejectsWith(newIn(box, { from: 'tags.yaml' }), 'MANIFEST_INVALID');
  await assert.rejectsWith(newIn(box, { from: 'none.yaml' }), 'NOT_FOUND', /none\.yaml/);
  await assert.rejectsWith(newIn(box, { from: 'folder' }), 'FILE_UNUSABLE', /not a chart/);
  await assert.rejectsWith(newIn(box, { from: '/dev/null' }), 'FILE_UNUSABLE', /regular/);
  await assert.rejectsWith(newIn(box, { name: '../x' }), 'PACKAGE_INVALID');
  await assert.rejectsWith(newIn(box, { hooks: ['x'] }), 'USAGE');
  await assert.rejectsWith(newIn(box, { root: box.at('none') }), 'NOT_FOUND');
  await assert.rejectsWith(newIn(box, { samples: box.at('none') }), 'UNSUPPORTED', /of a bundle/);
  assert.equal(await readdir(box.path), before);
});

test('a file that is larger than is read is refused', async () => {
  await using box = await tree({ 'a.yaml': Buffer.alloc(9 << 20, '#') });
  await assert.rejectsWith(newIn(box, { from: 'a.yaml' }), 'FILE_UNUSABLE', /larger/);
});

test('an abort leaves nothing behind', async () => {
  await using box = await tree({ 'a.yaml': POD });
  const signal = AbortSignal.abort(new Error('stop'));
  let said = '';
  await newIn(box, { from: 'a.yaml', signal }).catch((error: unknown) => {
    said = String(error);
  });
  assert.match(said, 'stop');
  assert.equal(await readdir(box.path), ['a.yaml']);
});

const HELM = `#!/usr/bin/env bash
if [[ "$1" == show ]]; then printf 'apiVersion: v2\\nname: web-chart\\nversion: "3.2.1"\\n'; exit 0; fi
printf '%s\\n' "$*" >"$HOME/asked"
cat <<'END'
${POD}END
`;

test('a chart is rendered by helm, and its version is that of the chart', async () => {
  await using box = await tree({ 'bin/helm': HELM, 'chart/Chart.yaml': 'name: web-chart\n' });
  for (const [name, from] of [
    ['one', 'chart'],
    ['two', 'chart/Chart.yaml'],
  ] as const) {
    const upstream = 'https://charts.example';
    const path = `${box.at('bin')}:${process.env['PATH'] ?? ''}`;
    const made = await newIn(box, { name, from, version: undefined, upstream, path });
    assert.is(made.version, '3.2.1');
    assert.is(
      await readFile(box.at('asked'), 'utf8'),
      `template ${name} ${box.at('chart')} --namespace ${name} --include-crds\n`,
    );
    const generator = await readFile(box.at('addons', name, 'template/generate.sh'), 'utf8');
    assert.match(generator, "CHART='web-chart'\n");
    assert.match(generator, "UPSTREAM='https://charts.example'\n");
  }
});

test('a chart without helm is refused, with what to do', async () => {
  await using box = await tree({ 'chart/Chart.yaml': 'name: x\n', 'x.tgz': '' });
  for (const from of ['chart', 'chart/Chart.yaml', 'x.tgz']) {
    const error = await assert.rejectsWith(newIn(box, { from, path: box.at('none') }), 'UNSUPPORTED', /helm/);
    assert.match(error.hint ?? '', /helm template web CHART --namespace web --include-crds > web\.yaml/);
  }
});

test('what helm says when it fails is told', async () => {
  await using box = await tree({ 'bin/helm': '#!/bin/sh\necho "values are wrong" >&2\nexit 3\n', 'c/Chart.yaml': '' });
  const path = `${box.at('bin')}:${process.env['PATH'] ?? ''}`;
  await assert.rejectsWith(newIn(box, { from: 'c', path }), 'PROGRAM_FAILED', /values are wrong/);
  await chmod(box.at('bin/helm'), 0o755);
  assert.equal((await readdir(box.path)).toSorted(), ['bin', 'c']);
});

test.run();
