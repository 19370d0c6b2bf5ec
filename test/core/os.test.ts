import { OS_IDS, OSES, OS_KEYWORDS, isOsId, osOutputs } from '../../src/core/os.ts';
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

test('names that objects inherit are no systems', () => {
  assert.not.ok(isOsId('constructor'));
  assert.ok(isOsId('rhel-9'));
});

test.run();
