import { chmod, readdir, readFile } from 'node:fs/promises';
import type { ProgressEvent } from '../../../src/core/events.ts';
import {
  findTemplates,
  generateAddon,
  type Generated,
  type GenerateOptions,
} from '../../../src/manifest/scaffold/generate.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { newIn, RESOURCES, runGenerator } from '../../support/scaffold.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree, writeTree, type Files, type Tree } from '../../support/tree.ts';
import { serveFiles } from '../../support/web-server.ts';

const test = suite('scaffold/generate');
const withCurl = unless(missing('curl'), test);

type Given = Partial<GenerateOptions> & { readonly signal: AbortSignal };

async function generateIn(box: Tree, name: string, given: Given): Promise<Generated> {
  const env = { PATH: process.env['PATH'] ?? '' };
  return generateAddon(box.path, name, { version: undefined, force: false, env, report: noReport, ...given });
}

function template(script: string, more: Files = {}): Files {
  return { 'addons/web/template/generate.sh': `#!/usr/bin/env bash\nset -e\n${script}\n`, ...more };
}

test('its words and its folder are the generator’s, and what it makes is told', async ({ signal }) => {
  await using box = await tree(
    template(
      'echo "$PWD $*"; mkdir -p ../2.0; echo x >../2.0/Manifest; echo "web_version=2.0" >>"$GITHUB_OUTPUT"; echo bye >&2',
      { 'addons/web/1.0/Manifest': '' },
    ),
  );
  const events: ProgressEvent[] = [];
  const report = (event: ProgressEvent): void => void events.push(event);
  const generated = await generateIn(box, 'web', { version: '2.0', force: true, report, signal });
  assert.equal(generated, { name: 'web', made: ['2.0'], outputs: { web_version: '2.0' } });
  const lines = events.flatMap((event) => (event.type === 'step-log' ? [event.text] : []));
  assert.equal(lines.toSorted(), [`${box.at('addons/web/template')} --version=2.0 --force`, 'bye'].toSorted());
  assert.is(events.at(-1)?.type, 'step-done');
});

test('a version that was made anew is told, one that was left alone is not', async ({ signal }) => {
  const old = { 'addons/web/1.0/Manifest': '', 'addons/web/2.0/Manifest': '' };
  await using box = await tree(template('rm -r ../2.0; mkdir ../2.0; echo y >../2.0/Manifest', old));
  assert.equal((await generateIn(box, 'web', { signal })).made, ['2.0']);
  await using other = await tree(template('true', old));
  assert.equal((await generateIn(other, 'web', { signal })).made, []);
});

test('an add-on without a template is told how it gets its next version, not to be created again', async ({
  signal,
}) => {
  await using box = await tree({ 'addons/web/1.0/Manifest': '' });
  const error = await assert.rejectsWith(
    generateIn(box, 'web', { signal }),
    'NOT_FOUND',
    /addons\/web has no template/,
  );
  assert.match(error.hint ?? '', /^copy the folder of a version in addons\/web to that of the next one/);
  assert.not.match(error.hint ?? '', /curlew new/);
});

test('script.sh is run too, and one that is no program by bash', async ({ signal }) => {
  await using box = await tree({ 'addons/web/template/script.sh': 'mkdir ../3' });
  await chmod(box.at('addons/web/template/script.sh'), 0o644);
  assert.equal(await findTemplates(box.path), ['web']);
  assert.equal((await generateIn(box, 'web', { signal })).made, ['3']);
});

test('a package has a generator like an add-on', async ({ signal }) => {
  await using box = await tree({
    'packages/cluster/template/generate.sh': 'mkdir ../3',
    'addons/web/1.0/Manifest': '',
  });
  assert.equal(await findTemplates(box.path), ['cluster']);
  assert.equal((await generateIn(box, 'cluster', { signal })).made, ['3']);
});

test('its status and last lines are told when it fails', async ({ signal }) => {
  await using box = await tree(template('echo "upstream is away" >&2; exit 42'));
  const error = await assert.rejectsWith(generateIn(box, 'web', { signal }), 'PROGRAM_FAILED', /status 42/);
  assert.match(error.message, 'upstream is away');
});

test('one that is not there is refused, with one that is near', async ({ signal }) => {
  await using box = await tree(template('true'));
  const error = await assert.rejectsWith(generateIn(box, 'wbe', { signal }), 'NOT_FOUND');
  assert.match(error.hint ?? '', 'did you mean "web"?');
  await assert.rejectsWith(generateIn(box, '../web', { signal }), 'NOT_FOUND');
  await assert.rejectsWith(generateIn(box, 'web', { version: '../../x', signal }), 'PACKAGE_INVALID');
});

withCurl('an abort ends it, and its own generator leaves what was there before', async ({ signal }) => {
  await using box = await tree({ 'web.yaml': RESOURCES });
  await using server = await serveFiles({}, { faults: [() => ({ status: 200, sending: 'never' })] });
  await newIn(box, { from: 'web.yaml', upstream: `${server.url}/{version}/web.yaml` });
  const before = (await readdir(box.at('addons/web'), { recursive: true })).toSorted();
  const stop = new AbortController();
  const generating = generateIn(box, 'web', {
    version: '1.0.0',
    force: true,
    signal: AbortSignal.any([stop.signal, signal]),
  });
  while (server.log.length === 0) await new Promise((resolve) => setImmediate(resolve));
  stop.abort(new Error('stopped'));
  let said = '';
  await generating.catch((error: unknown) => {
    said = String(error);
  });
  assert.match(said, 'stopped');
  assert.equal((await readdir(box.at('addons/web'), { recursive: true })).toSorted(), before);
});

for (const [title, newest, told] of [
  ['JSON with a tag', '{"url": "x", "tag_name": "v2.0.0", "name": "version 2"}', '2.0.0'],
  ['JSON with a version', '{\n  "version": "2.0.0"\n}\n', '2.0.0'],
  ['nothing but the version', '\n v2.0.0 \n', '2.0.0'],
] as const) {
  withCurl(`the generator of a new template finds the newest version: ${title}`, async ({ signal }) => {
    await using server = await serveFiles({ newest, 'v2.0.0/web.yaml': RESOURCES.replace('web:1.0', 'web:2.0') });
    await using box = await tree({ 'web.yaml': RESOURCES });
    await newIn(box, {
      from: 'web.yaml',
      upstream: `${server.url}/v{version}/web.yaml`,
      newest: `${server.url}/newest`,
    });
    const { made, outputs } = await generateIn(box, 'web', { signal });
    assert.equal([made, outputs], [[told], { web_version: told }]);
    assert.match(
      await readFile(box.at('addons/web', told, 'Manifest'), 'utf8'),
      'image web registry.example/web:2.0\n',
    );
    assert.match(await readFile(box.at('addons/web', told, 'install.sh'), 'utf8'), `addons/web/${told}"`);
    assert.equal((await generateIn(box, 'web', { signal })).made, []);
  });
}

withCurl('it follows an address that leads to a release', async ({ signal }) => {
  await using server = await serveFiles(
    { 'x/releases/tag/v3.1': '<html>', '3.1.yaml': RESOURCES },
    {
      faults: [
        ({ path }) =>
          path === '/x/releases/latest' ? { status: 302, headers: { location: '/x/releases/tag/v3.1' } } : undefined,
      ],
    },
  );
  await using box = await tree({ 'web.yaml': RESOURCES });
  const upstream = `${server.url}/{version}.yaml`;
  await newIn(box, { from: 'web.yaml', upstream, newest: `${server.url}/x/releases/latest` });
  // Where the address of upstream has no v of its own, it belongs to the version.
  await assert.rejectsWith(generateIn(box, 'web', { signal }), 'PROGRAM_FAILED', /v3\.1\.yaml/);
  assert.equal((await generateIn(box, 'web', { version: '3.1', signal })).made, ['3.1']);
});

test('in a repository with kURL’s list of versions the new one is put below its marker, once', async () => {
  const list = 'web/src/installers/versions.js';
  await using box = await tree({
    'web.yaml': RESOURCES,
    [list]: 'web: [\n    // cron-web-update\n    "1.0.0",\n],\nother: [\n    // cron-other-update\n],\n',
  });
  await newIn(box, { from: 'web.yaml' });
  for (const force of [[], ['--force']]) {
    await runGenerator(box, 'web', ['--version=1.1.0', `--from=${box.at('web.yaml')}`, ...force]);
    assert.is(
      await readFile(box.at(list), 'utf8'),
      'web: [\n    // cron-web-update\n    "1.1.0",\n    "1.0.0",\n],\nother: [\n    // cron-other-update\n],\n',
    );
  }
});

/** Writes down what it is asked, and renders the file `web.yaml` of its home. */
const HELM = `#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$HOME/asked"
if [[ "$1" == show ]]; then printf 'name: chart\\nversion: 4.5.6\\n'; else cat "$HOME/web.yaml"; fi
`;

for (const [upstream, chart] of [
  ['oci://registry.example/charts/web', 'oci://registry.example/charts/web'],
  ['https://charts.example', 'chart --repo https://charts.example'],
] as const) {
  test(`helm is asked for the newest version of a chart, and for the chart: ${upstream}`, async ({ signal }) => {
    await using box = await tree({ 'bin/helm': HELM, 'web.yaml': RESOURCES, 'chart/Chart.yaml': '' });
    const path = `${box.at('bin')}:${process.env['PATH'] ?? ''}`;
    await newIn(box, { from: 'chart', upstream, path });
    await writeTree(box.path, { asked: '', 'addons/web/template/values.yaml': '' });
    const { made } = await generateIn(box, 'web', { env: { PATH: path, HOME: box.path }, signal });
    assert.equal(made, ['4.5.6']);
    assert.equal((await readFile(box.at('asked'), 'utf8')).trim().split('\n'), [
      `show chart ${chart}`,
      `template web ${chart} --version 4.5.6 --namespace web-system --include-crds --values values.yaml`,
    ]);
  });
}

for (const [title, args, said] of [
  ['an unknown argument', ['--verison=1'], /unknown argument/],
  ['a version that is a path', ['--version=../../x'], /cannot be a version/],
  ['nowhere to get it from', ['--version=2'], /location of upstream is unknown/],
  ['no newest version', [], /the newest version is unknown/],
  ['a file that is not there', ['--version=2', '--from=/none.yaml'], /none\.yaml/],
  ['nothing but comments', ['--version=2', '--from=EMPTY'], /upstream is empty/],
] as const) {
  test(`the generator refuses, and leaves nothing: ${title}`, async () => {
    await using box = await tree({ 'web.yaml': RESOURCES, empty: '# nothing\n' });
    await newIn(box, { from: 'web.yaml' });
    const before = (await readdir(box.at('addons/web'), { recursive: true })).toSorted();
    let message = '';
    const words = args.map((word) => word.replace('EMPTY', box.at('empty')));
    await runGenerator(box, 'web', words).catch((error: unknown) => {
      message = String(error);
    });
    assert.match(message, said);
    assert.equal((await readdir(box.at('addons/web'), { recursive: true })).toSorted(), before);
  });
}

test.run();
