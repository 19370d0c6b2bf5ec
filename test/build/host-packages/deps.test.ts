import type { Collected } from '../../../src/build/host-packages/collector.ts';
import { depsOf, depsText, type DepsInput } from '../../../src/build/host-packages/deps.ts';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/host-packages/deps');

function collected(names: readonly string[], requires: readonly string[]): Collected {
  const packages = names.map((name) => ({
    file: `${name}-1-1.noarch.rpm`,
    name,
    version: '1-1',
    arch: 'noarch',
    size: 1,
    digest: digestOf(name),
    repository: 'https://repository.example/',
  }));
  return { packages, requires, fetched: 0 };
}

interface Case extends Partial<DepsInput> {
  readonly title: string;
  readonly deps: readonly string[];
}

const CASES: readonly Case[] = [
  { title: 'direct names, sorted, each once', direct: ['lvm2', 'git', 'lvm2'], deps: ['git', 'lvm2'] },
  { title: 'capitals sort before small letters, whatever the locale', direct: ['b', 'A', 'a'], deps: ['A', 'a', 'b'] },
  { title: 'no directive for the system: nothing, so no folder', deps: [] },
  { title: 'blank names are dropped', direct: ['', '  ', 'fio'], deps: ['fio'] },
  {
    title: 'a direct name that is shipped goes',
    direct: ['collectd', 'lvm2'],
    shipped: ['collectd'],
    deps: ['lvm2'],
  },
  {
    title: 'and so does each that has a shipped name in it',
    direct: ['collectd-disk', 'libcollectd1', 'collect'],
    shipped: ['collectd'],
    deps: ['collect'],
  },
  {
    title: 'dots and stars in a shipped name are letters',
    direct: ['libxc', 'lib.c', 'libs'],
    shipped: ['lib.c', '*'],
    deps: ['libs', 'libxc'],
  },
  {
    title: 'first-level requirements of shipped packages come along',
    direct: ['lvm2'],
    shipped: ['collectd'],
    collected: [collected(['collectd'], ['glibc', 'bash'])],
    deps: ['bash', 'glibc', 'lvm2'],
  },
  {
    title: 'but not those that are shipped themselves',
    shipped: ['collectd', 'collectd-disk'],
    collected: [collected(['collectd', 'collectd-disk'], ['collectd', 'glibc'])],
    deps: ['glibc'],
  },
  {
    title: 'a direct name stays although a shipped package is called so by its file',
    direct: ['helper'],
    shipped: ['app'],
    collected: [collected(['app', 'helper'], [])],
    deps: ['helper'],
  },
  {
    title: 'libcurl goes when libcurl-minimal would do',
    collected: [collected(['app'], ['libcurl', 'libcurl-minimal'])],
    deps: ['libcurl-minimal'],
  },
  { title: 'libcurl alone stays', collected: [collected(['app'], ['libcurl'])], deps: ['libcurl'] },
  {
    title: 'a direct libcurl stays, and so does one that another folder needs alone',
    direct: ['libcurl'],
    collected: [collected(['app'], ['libcurl', 'libcurl-minimal']), collected(['other'], ['libcurl'])],
    deps: ['libcurl', 'libcurl-minimal'],
  },
  {
    title: 'openssl-snapsafe-libs is openssl-libs',
    collected: [collected(['app'], ['openssl-snapsafe-libs', 'openssl-libs'])],
    deps: ['openssl-libs'],
  },
  {
    title: 'and goes when that is shipped',
    collected: [collected(['openssl-libs'], ['openssl-snapsafe-libs', 'glibc'])],
    deps: ['glibc'],
  },
  {
    title: 'everything is shipped: nothing, so no folder',
    direct: ['collectd'],
    shipped: ['collectd'],
    collected: [collected(['collectd'], [])],
    deps: [],
  },
];

for (const { title, deps, direct = [], shipped = [], collected: folders = [] } of CASES) {
  test(title, () => {
    assert.equal(depsOf({ direct, shipped, collected: folders }), deps);
  });
}

test('the file has a name on each line', () => {
  assert.is(depsText(['bash', 'lvm2']), 'bash\nlvm2\n');
  assert.is(depsText([]), '');
});

test.run();
