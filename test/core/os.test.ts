import { OS_IDS, OSES, OS_KEYWORDS, isOsId, osFolders, osOutputs, osRow } from '../../src/core/os.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { repositoryUrl } from '../../src/core/repositories.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/os');

test('exactly the folders that kURL packages have', () => {
  const expected = ['ubuntu-16.04', 'ubuntu-18.04', 'ubuntu-20.04', 'ubuntu-22.04', 'ubuntu-24.04', 'ubuntu-26.04'];
  assert.equal(OS_IDS, [...expected, 'rhel-7', 'rhel-7-force', 'rhel-8', 'rhel-9', 'ol-7', 'amazon-2023']);
});

for (const [keyword, archives, deps] of [
  ['apt', ['ubuntu-16.04', 'ubuntu-18.04', 'ubuntu-20.04', 'ubuntu-22.04'], ['ubuntu-24.04']],
  ['apt24', [], ['ubuntu-24.04']],
  ['apt26', [], ['ubuntu-26.04']],
  ['yum', ['rhel-7', 'rhel-7-force', 'rhel-8'], ['rhel-9', 'amazon-2023']],
  ['yum8', ['rhel-8'], []],
  ['yum9', ['rhel-9'], []],
  ['yumol', ['ol-7'], []],
  ['yum2023', ['amazon-2023'], []],
] as const) {
  test(`${keyword} reaches its systems and no other`, () => {
    const outputs = osOutputs(keyword);
    assert.equal(
      outputs.filter(({ output }) => output === 'archives').map(({ os }) => os),
      archives,
    );
    assert.equal(
      outputs.filter(({ output }) => output === 'deps').map(({ os }) => os),
      deps,
    );
  });
}

test('every keyword of the table reaches a system of one family', () => {
  for (const keyword of OS_KEYWORDS) {
    const families = new Set(osOutputs(keyword).map(({ os }) => OSES[os].family));
    assert.is(families.size, 1, keyword);
  }
});

test('every row names repositories that are signed and have an address for each architecture', () => {
  for (const os of OS_IDS) {
    const { repositories, family, builder } = osRow(os);
    assert.ok(repositories.length > 0, os);
    assert.match(builder, /^docker\.io\/[a-z]+\/[a-z]+:[0-9.]+$/);
    const ids = new Set(repositories.map(({ id }) => id));
    assert.is(ids.size, repositories.length, os);
    for (const repository of repositories) {
      assert.ok(repository.key, repository.id);
      assert.is(repository.suites !== undefined, family === 'debian', repository.id);
      const pattern = repository.form === 'mirrorlist' ? /^https:\/\/[^@?#]+\.list$/ : /^https?:\/\/[^@?#]+\/$/;
      for (const arch of ARCHES) assert.match(repositoryUrl(repository, arch), pattern);
    }
  }
});

test('names that objects inherit are no systems', () => {
  assert.not.ok(isOsId('constructor'));
  assert.ok(isOsId('rhel-9'));
});

for (const [name, folders] of [
  ['ubuntu-22.04', ['ubuntu-22.04']],
  ['rhel-8', ['rhel-8']],
  ['rocky-8.9', ['rhel-8']],
  ['almalinux-10', ['rhel-9']],
  ['ol-7.9', ['rhel-7', 'ol-7']],
  ['ol-8', ['rhel-8']],
  ['amazon-2', ['rhel-7', 'rhel-7-force']],
  ['rhel-7-force', ['rhel-7', 'rhel-7-force']],
  ['amzn-2023', ['amazon-2023']],
  ['amazon-2032', []],
  ['rhel-6', []],
  ['ubuntu', []],
  ['ubuntu-22.10', []],
  ['constructor', []],
  ['', []],
] as const) {
  test(`what is kept for ${JSON.stringify(name)} is all that it may read`, () => {
    assert.equal(osFolders(name), folders);
  });
}

test.run();
