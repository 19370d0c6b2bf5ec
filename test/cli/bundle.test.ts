/** The words of `curlew bundle`, from the sources; the tool for nodes is that of the build. */
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import { curlew, type Outcome } from '../support/curlew.ts';
import { noise } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: bundles of many sizes
const test = suite('cli: bundle', { timeoutMs: 120_000 });

function addon(name: string, version: string, seed = 1): TestPackage {
  const files = [
    { path: 'install.sh', data: `${name}() { :; }\n` },
    { path: 'assets/blob', data: noise(5000, seed) },
  ];
  return { name, version, files };
}

async function storeBox(packages: readonly TestPackage[], spec: string, signal: AbortSignal): Promise<Tree> {
  const box = await tree({ 'spec.yaml': spec });
  await publishTestPackages(box, packages, signal);
  return box;
}

function bundle(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(['bundle', ...words], box.path);
}

async function ok(box: Tree, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await bundle(box, ...words);
  assert.is(exitCode, 0, stderr);
  return stdout;
}

test('a bundle and a plan of a spec with secrets are readable for their owner only, others for all', async ({
  signal,
}) => {
  const settings = { type: 'object', properties: { seed: { type: 'string', writeOnly: true } } };
  const alpha = { ...addon('alpha', '1.0.0'), extra: { settings } };
  await using box = await storeBox([alpha], specOf({ alpha: '1.0.0' }), signal);
  for (const [file, field] of [
    ['secret.yaml', 'adminPassword'],
    ['schema.yaml', 'seed'],
  ] as const) {
    const text = specOf({ alpha: '1.0.0' }).replace('"1.0.0"', `"1.0.0", ${field}: canary-1`);
    await writeFile(box.at(file), text);
  }
  for (const [file, more] of [
    ['section.yaml', 'kurl: {adminPassword: canary-1}'],
    ['proxy.yaml', 'kurl: {proxyAddress: "http://user:canary-1@proxy:3128"}'],
    ['absent.yaml', 'kotsadm: {version: "", adminPassword: canary-1}'],
  ] as const) {
    await writeFile(box.at(file), `${specOf({ alpha: '1.0.0' })}  ${more}\n`);
  }
  const partOf = (spec: string): string =>
    spec === 'absent.yaml' ? 'kotsadm' : ['section.yaml', 'proxy.yaml'].includes(spec) ? 'kurl' : 'alpha';
  for (const [spec, mode] of [
    ['spec.yaml', 0o644],
    ['secret.yaml', 0o600],
    ['schema.yaml', 0o600],
    ['section.yaml', 0o600],
    ['proxy.yaml', 0o600],
    ['absent.yaml', 0o600],
  ] as const) {
    const part = partOf(spec);
    for (const more of [
      ['--dry-run', '--out', 'made'],
      ['-o', 'made'],
    ]) {
      const words = [spec, '--from', 'store', '--allow-invalid-settings', '--force', ...more];
      const { exitCode, stderr } = await bundle(box, ...words);
      assert.is(exitCode, 0, stderr);
      assert.is((await stat(box.at('made'))).mode & 0o777, mode);
      const told = stderr.replaceAll(/\s+/g, ' ').includes(`made: the spec has secrets (${part})`);
      assert.is(told, mode === 0o600, stderr);
      assert.not.match(stderr, 'canary-1');
    }
    const parts = await bundle(
      box,
      spec,
      '--from',
      'store',
      '--allow-invalid-settings',
      '-o',
      `${spec}.gz`,
      '--split',
      '6M',
    );
    assert.is(parts.exitCode, 0, parts.stderr);
    assert.is(
      parts.stderr.replaceAll(/\s+/g, ' ').includes(`the spec has secrets (${part})`),
      mode === 0o600,
      parts.stderr,
    );
    const names = (await readdir(box.path)).filter((name) => name.startsWith(`${spec}.gz.part-`));
    assert.ok(names.length > 0);
    for (const name of names) assert.is((await stat(box.at(name))).mode & 0o777, mode, name);
  }
});

test('a pulled bundle with secrets, and the parts of one, are for their owner only', async ({ signal }) => {
  const settings = { type: 'object', properties: { seed: { type: 'string', writeOnly: true } } };
  const alpha = { ...addon('alpha', '1.0.0'), extra: { settings } };
  const spec = specOf({ alpha: '1.0.0' });
  await using box = await storeBox([alpha], spec.replace('"1.0.0"', '"1.0.0", seed: canary-1'), signal);
  await writeFile(box.at('plain.yaml'), spec);
  for (const [file, mode] of [
    ['spec.yaml', 0o600],
    ['plain.yaml', 0o644],
  ] as const) {
    const made = `${file}.tar.gz`;
    await ok(box, file, '--from', 'store', '-o', made);
    await chmod(box.at(made), 0o644);
    for (const words of [
      ['split', made, '--size', '6M', '-o', `parts-${made}`],
      ['pull', box.at(made), '-o', `pulled-${made}`],
    ]) {
      const { exitCode, stderr } = await runCommand(words, box.path);
      assert.is(exitCode, 0, stderr);
      const told = stderr.replaceAll(/\s+/g, ' ').includes('the spec has secrets (alpha)');
      assert.is(told, mode === 0o600, stderr);
    }
    const names = (await readdir(box.path)).filter((name) => name.includes(`-${made}`) && !name.endsWith('.json'));
    assert.ok(names.length > 1, names.join(' '));
    for (const name of names.filter((one) => one.includes('.part-') || one.startsWith('pulled-'))) {
      assert.is((await stat(box.at(name))).mode & 0o777, mode, name);
    }
  }
});

test('a plan is saved, carried out to the same bytes, and compared with what it would be now', async ({ signal }) => {
  const packages = [addon('alpha', '1.0.0'), addon('alpha', '1.1.0', 2), addon('beta', '1.0.0', 3)];
  await using box = await storeBox(packages, specOf({ alpha: '1.0.x' }), signal);
  const { stdout: planned } = await curlew(
    ['bundle', 'spec.yaml', '--from', 'store', '--dry-run', '--out', 'plan.json'],
    { cwd: box.path },
  );
  assert.match(planned, /^alpha 1\.0\.0 \(.*, 1\.0\.x: greatest patch of 1\.0\)$/m);
  assert.match(planned, /plan\.json: the plan$/);
  assert.match(await ok(box, '--from-plan', 'plan.json', '--from', 'store', '-o', 'a.tar.gz'), /a\.tar\.gz: /);
  await ok(box, 'spec.yaml', '--from', 'store', '-o', 'b.tar.gz', '--verify');
  assert.ok((await readFile(box.at('a.tar.gz'))).equals(await readFile(box.at('b.tar.gz'))));

  const same = await ok(box, 'spec.yaml', '--from', 'store', '--dry-run', '--against', 'plan.json');
  assert.match(same, /^identical to the previous bundle, byte for byte$/m);
  await writeFile(box.at('spec.yaml'), specOf({ alpha: '1.1.0', beta: 'latest' }));
  const words = ['spec.yaml', '--from', 'store', '--dry-run', '--out', 'new.json', '--against', 'plan.json'];
  const differs = await ok(box, ...words);
  assert.match(differs, /^ {2}alpha 1\.0\.0 -> 1\.1\.0, /m);
  assert.match(differs, /^ {2}beta 1\.0\.0: new, /m);
  // Two saved plans need no store.
  const json: unknown = JSON.parse(
    await ok(box, '--from-plan', 'new.json', '--dry-run', '--against', 'plan.json', '--json'),
  );
  assert.match(JSON.stringify(json), '"isSame":false');
});

test('a file that is there is replaced only when asked, and refused before anything is read', async ({ signal }) => {
  await using box = await storeBox([addon('alpha', '1.0.0')], specOf({ alpha: '1.0.x' }), signal);
  await writeFile(box.at('mine'), 'mine');
  for (const words of [
    ['spec.yaml', '--from', 'store', '--dry-run', '--out', 'mine'],
    ['none.yaml', '--from', 'none', '--dry-run', '--out', 'mine'],
    ['none.yaml', '--from', 'none', '-o', 'mine'],
  ]) {
    const { exitCode, stderr } = await bundle(box, ...words);
    assert.is(exitCode, 24, stderr);
    assert.match(stderr, /mine: the file already exists\n {2}hint: .*--force$/m);
    assert.is(await readFile(box.at('mine'), 'utf8'), 'mine');
  }
  await ok(box, 'spec.yaml', '--from', 'store', '--dry-run', '--out', 'mine', '--force');
  assert.match(await ok(box, '--from-plan', 'mine', '--dry-run'), /^alpha 1\.0\.0/m);
});

test('what a saved plan says drives no terminal', async ({ signal }) => {
  await using box = await storeBox([addon('alpha', '1.0.0')], specOf({ alpha: 'latest' }), signal);
  await ok(box, 'spec.yaml', '--from', 'store', '--dry-run', '--out', 'plan.json');
  const text = await readFile(box.at('plan.json'), 'utf8');
  await writeFile(box.at('plan.json'), text.replace('"because": "latest"', '"because": "\\u001b[2J"'));
  assert.match(await ok(box, '--from-plan', 'plan.json', '--dry-run'), /latest: \\u001b\[2J\)$/m);
});

test('a store that has changed since stops a saved plan, and nothing is written', async ({ signal }) => {
  await using box = await storeBox([addon('alpha', '1.0.0')], specOf({ alpha: 'latest' }), signal);
  await ok(box, 'spec.yaml', '--from', 'store', '--dry-run', '--out', 'plan.json');
  await writeFile(box.at('store/r1/alpha-1.0.0.tar.gz'), 'other bytes');
  const { exitCode, stderr } = await bundle(box, '--from-plan', 'plan.json', '--from', 'store', '-o', 'a.tar.gz');
  assert.is(exitCode, 17);
  assert.match(stderr, /alpha-1\.0\.0\.tar\.gz: has changed since the plan was created/);
  assert.match(stderr, /create the plan again/);
  assert.not((await readdir(box.path)).includes('a.tar.gz'));
});

test('packages beside the spec, steps of an upgrade, and a spec without an add-on are planned with reasons', async ({
  signal,
}) => {
  const kubernetes = ['1.28.2', '1.28.15', '1.29.9'].map((version) => addon('kubernetes', version));
  const packages = [...kubernetes, addon('alpha', '1.0.0'), addon('beta', '2.0.0')];
  await using box = await storeBox(packages, specOf({ kubernetes: '1.29.9', alpha: 'latest' }), signal);
  const words = ['--with', 'beta', '--without', 'alpha', '--upgrade-from', '1.27.3'];
  await ok(box, 'spec.yaml', '--from', 'store', '--dry-run', '--out', 'plan.json', ...words);
  const made = await ok(box, '--from-plan', 'plan.json', '--from', 'store', '-o', 'a.tar.gz');
  assert.match(made, /^kubernetes 1\.28\.15 \(.*, on the way from 1\.27\.3 to 1\.29\.9\)$/m);
  assert.match(made, /^beta 2\.0\.0 \(.*, not in the spec, latest\)$/m);
  const { exitCode, stdout } = await runCommand(['inspect', 'a.tar.gz', '--files'], box.path);
  assert.is(exitCode, 0);
  assert.match(stdout, 'addons/kubernetes/1.28.15/install.sh');
  assert.match(stdout, 'addons/beta/2.0.0/install.sh');
  assert.not.match(stdout, 'alpha');
});

test('one file upgrades through its steps: they lie there for the hook, and are gone afterwards', async ({
  signal,
}) => {
  const rook = ['1.9.12', '1.10.11', '1.11.2'].map((version): TestPackage => {
    const script = 'rook() { addon_fetch_multiple_airgap rook-1.10.11 >"$TRACE"; }\n';
    const files = [{ path: 'install.sh', data: version === '1.11.2' ? script : 'rook() { :; }\n' }];
    return { name: 'rook', version, files };
  });
  await using box = await storeBox(rook, specOf({ rook: '1.9.12' }), signal);
  const install = (...words: readonly string[]): Promise<Outcome> => {
    const all = ['install', '--bundle', 'b.tar.gz', '--root', 'root', '--unconfined', ...words];
    return runTraced(all, box);
  };
  await ok(box, 'spec.yaml', '--from', 'store', '-o', 'b.tar.gz');
  assert.is((await install()).exitCode, 0);
  await writeFile(box.at('spec.yaml'), specOf({ rook: '1.11.2' }));
  await ok(box, 'spec.yaml', '--from', 'store', '-o', 'b.tar.gz', '--force', '--upgrade-from', 'rook@1.9.12');
  const { stdout } = await install('--dry-run');
  assert.match(stdout, /^rook 1\.10\.11\n {2}extra +a step on the way from 1\.9\.12 to 1\.11\.2$/m);
  const upgraded = await install();
  assert.is(upgraded.exitCode, 0, upgraded.stderr);
  assert.is(await readFile(box.at('trace'), 'utf8'), 'The package rook-1.10.11 is already available locally.\n');
  assert.equal((await readdir(box.at('root/var/lib/curlew/addons/rook'))).toSorted(), ['1.11.2', '1.9.12']);
});

for (const [words, message, hint] of [
  [['--with', 'betaa'], /betaa: release r1 does not contain this add-on/, /did you mean beta\?/],
  [['--with', 'beta@2.0.1'], /beta: no version 2\.0\.1/, /did you mean 2\.0\.0\?/],
  [
    ['--without', 'alpha'],
    /--without alpha: spec\.yaml has no other add-on/,
    /hint: keep at least one add-on of the spec/,
  ],
  [['--without', 'alhpa'], /--without alhpa: spec\.yaml has no such add-on/, /did you mean alpha\?/],
  [['--upgrade-from', '1.27.3'], /--upgrade-from: the spec does not contain kubernetes/, /add-ons in the spec: alpha/],
] as const) {
  test(`what is not there is told with a near name: ${words.join(' ')}`, async ({ signal }) => {
    await using box = await storeBox(
      [addon('alpha', '1.0.0'), addon('beta', '2.0.0')],
      specOf({ alpha: 'latest' }),
      signal,
    );
    const { exitCode, stderr } = await bundle(box, 'spec.yaml', '--from', 'store', '--dry-run', ...words);
    assert.is(exitCode, 11, stderr);
    assert.match(stderr, message);
    assert.match(stderr, hint);
  });
}

for (const [title, words, message] of [
  [
    'a layout that is none',
    ['spec.yaml', '--from', 'store', '-o', 'a', '--layout', 'curl'],
    /--layout curl: must be kurl/,
  ],
  [
    'scripts without a layout',
    ['spec.yaml', '--from', 'store', '-o', 'a', '--kurl-scripts', 'x'],
    /--layout kurl requires --kurl-scripts/,
  ],
  ['an odd name', ['spec.yaml', '--from', 'store', '--dry-run', '--with', '../x@1'], /--with/],
  [
    'steps beside a plan',
    ['--from-plan', 'p', '--from', 'store', '-o', 'a', '--with', 'x'],
    /already determines --with/,
  ],
  ['nothing to write to', ['spec.yaml', '--from', 'store'], /-o/],
  [
    'a place for the plan without --dry-run',
    ['spec.yaml', '--from', 'store', '-o', 'a', '--out', 'p'],
    /--out requires/,
  ],
  [
    'a comparison without --dry-run',
    ['spec.yaml', '--from', 'store', '-o', 'a', '--against', 'p'],
    /--against requires/,
  ],
  [
    'a spec beside a plan',
    ['spec.yaml', '--from-plan', 'p', '--from', 'store', '-o', 'a'],
    /already determines the installer spec/,
  ],
  [
    'a release beside a plan',
    ['--from-plan', 'p', '--from', 'store', '-o', 'a', '--release', 'r1'],
    /already determines --release/,
  ],
  ['no store', ['spec.yaml', '-o', 'a'], /--from/],
] as const) {
  test(`wrong words: ${title}`, async () => {
    await using box = await tree({ 'spec.yaml': '', p: '{}' });
    const { exitCode, stderr } = await bundle(box, ...words);
    assert.is(exitCode, 64, stderr);
    assert.match(stderr, message);
  });
}

test('a file that is no plan is told as such', async () => {
  await using box = await tree({ p: '{}' });
  const { exitCode, stderr } = await bundle(box, '--from-plan', 'p', '--from', 'store', '-o', 'a');
  assert.is(exitCode, 25);
  assert.match(stderr, /read p: not a bundle plan/);
  assert.is((await bundle(box, '--from-plan', 'none', '--from', 'store', '-o', 'a')).exitCode, 14);
});

test('a spec without add-ons becomes a bundle with a warning', async ({ signal }) => {
  await using box = await storeBox([addon('alpha', '1.0.0')], specOf({}), signal);
  const { exitCode, stderr } = await bundle(box, 'spec.yaml', '--from', 'store', '--dry-run');
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'spec.yaml has no add-on: the bundle has only curlew itself');
});

test.run();
