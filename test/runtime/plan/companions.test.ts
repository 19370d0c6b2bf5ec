import { readdir, readFile } from 'node:fs/promises';
import { companionLabel, neededCompanions } from '../../../src/runtime/plan/companions.ts';
import type { OfferedPackage, SourcePackage } from '../../../src/runtime/node/source.ts';
import { NO_RECORDS, type Records } from '../../../src/runtime/plan/records.ts';
import * as assert from '../../support/assert.ts';
import { bundleOf, type TestAddon } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('runtime/along', { timeoutMs: 60_000 });

/** Writes down which of its versions lie in the install folder, and that the library finds the step. */
function upgrading(version: string): TestAddon {
  const more = [
    'rook() {',
    '  if [[ "${ROOK_STEP-}" != "" ]]; then addon_fetch_multiple_airgap "rook-$ROOK_STEP" >>"$TRACE"; fi',
    '  ls addons/rook >>"$TRACE"',
    '}',
  ].join('\n');
  return tracer('rook', more, version);
}

const MACHINE: TestAddon = {
  name: 'host',
  version: 'openssl',
  files: { Manifest: '', 'ubuntu-22.04/Deps': 'openssl\n' },
  extra: { tree: 'packages', os: ['ubuntu-22.04'] },
};

async function bundle(): Promise<{ readonly of: (name: string, version: string) => SourcePackage }> {
  const packages = await packagesOf(
    bundleOf([upgrading('1.9.12'), upgrading('1.10.11'), upgrading('1.11.2'), MACHINE]),
  );
  const of = (name: string, version: string): SourcePackage => {
    const found = packages.find(({ ref }) => ref.name === name && ref.version === version);
    if (found === undefined) throw new Error(`no ${name} ${version}`);
    return found;
  };
  return { of };
}

async function lines(box: Tree): Promise<readonly string[]> {
  return (await readFile(box.at('trace'), 'utf8')).trimEnd().split('\n');
}

test('steps lie there while an older version is upgraded, are found by the library, and go away afterwards', async () => {
  await using box = await tree({ trace: '' });
  const { of } = await bundle();
  const offered: readonly OfferedPackage[] = [
    { source: of('rook', '1.10.11'), role: 'step' },
    { source: of('host', 'openssl'), role: 'machine' },
  ];
  await run(box, [of('rook', '1.9.12')], { offered });
  assert.equal((await lines(box)).includes('1.10.11'), false, 'nothing is upgraded: no steps');
  assert.equal(await readdir(box.at('node/packages/host')), ['openssl']);

  await run(box, [of('rook', '1.11.2')], { offered, variables: [['ROOK_STEP', '1.10.11']] });
  const told = await lines(box);
  assert.ok(told.includes('The package rook-1.10.11 is already available locally.'), told.join('\n'));
  assert.ok(told.includes('1.10.11') && told.includes('1.11.2'), told.join('\n'));
  const former = 'what it can be rolled back to';
  assert.equal((await readdir(box.at('node/addons/rook'))).toSorted(), ['1.11.2', '1.9.12'], former);
  assert.equal(await readdir(box.at('node/packages/host')), ['openssl']);
});

test('only steps between what is here and what is wanted are taken', async () => {
  const { of } = await bundle();
  const offered: readonly OfferedPackage[] = [
    { source: of('rook', '1.9.12'), role: 'step' },
    { source: of('rook', '1.10.11'), role: 'step' },
  ];
  const applied = (version: string): Records => ({
    ...NO_RECORDS,
    applied: {
      rook: { version, digest: undefined, settings: of('rook', '1.9.12').addon.digest, finished: true, run: 'x' },
    },
  });
  const wanted = (from: string | undefined, to: string): readonly string[] =>
    neededCompanions(
      offered,
      [{ tree: 'addons', name: 'rook', version: to }],
      from === undefined ? NO_RECORDS : applied(from),
    ).map(({ source }) => source.ref.version);
  assert.equal(wanted(undefined, '1.11.2'), [], 'nothing is here: nothing to upgrade');
  assert.equal(wanted('1.9.3', '1.11.2'), ['1.9.12', '1.10.11']);
  assert.equal(wanted('1.9.12', '1.11.2'), ['1.10.11']);
  assert.equal(wanted('1.9.3', '1.10.11'), ['1.9.12']);
  assert.equal(wanted('1.11.2', '1.11.2'), []);
  assert.is(companionLabel({ tree: 'addons', name: 'a', version: '1.0+X' }), 'a-1.0-x');
});

test.run();
