import { parseBuildPlan, planBuild, type AddonPlan } from '../../src/build/plan.ts';
import { canonicalJson } from '../../src/core/digest.ts';
import { addonRef } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('build/plan');
const options = { arch: 'amd64', imageFormat: 'oci' } as const;
const addon: AddonPlan = {
  ref: addonRef('a', '1.0'),
  root: '/x/addons/a/1.0',
  steps: [
    { kind: 'image', id: 'i', reference: 'docker.io/library/i:1', archive: undefined, remoteLoad: true },
    { kind: 'asset', fileName: 'f', source: 'https://h/f', local: false, digest: undefined },
    { kind: 'os-packages', os: 'ubuntu-24.04', output: 'deps', packages: ['containerd'] },
    { kind: 'container-build', destination: 'rhel-9', dockerfile: 'D', version: '1' },
  ],
};

test('a plan that was saved is read back as it was', () => {
  const plan = planBuild([addon], options);
  assert.equal(parseBuildPlan(canonicalJson(plan), 'p'), JSON.parse(JSON.stringify(plan)));
});

test('two add-ons that would make one package file are refused', () => {
  const [one, two] = [addonRef('a', '1.0+b'), addonRef('a', '1.0-b')];
  const plan = (): unknown =>
    planBuild(
      [one, two].map((ref) => ({ ...addon, ref })),
      options,
    );
  assert.throwsWith(plan, 'MANIFEST_INVALID', /same package a-1\.0-b/);
});

for (const [title, change] of [
  ['no format', { format: undefined }],
  ['another format', { format: 2 }],
  ['an unknown architecture', { arch: 'sparc' }],
  ['add-ons that are no list', { addons: {} }],
  ['a version with a path in it', { addons: [{ ...addon, ref: { ...addon.ref, version: '../1' } }] }],
  ['an asset that leaves its folder', { addons: [{ ...addon, steps: [{ ...addon.steps[1], fileName: '../f' }] }] }],
  ['an image id with a slash', { addons: [{ ...addon, steps: [{ ...addon.steps[0], id: 'a/b' }] }] }],
  ['a reference that does not parse', { addons: [{ ...addon, steps: [{ ...addon.steps[0], reference: 'A B' }] }] }],
  ['the same asset twice', { addons: [{ ...addon, steps: [addon.steps[1], addon.steps[1]] }] }],
  ['the same image id twice', { addons: [{ ...addon, steps: [addon.steps[0], addon.steps[0]] }] }],
  ['the folder of no system', { addons: [{ ...addon, steps: [{ ...addon.steps[2], os: 'images' }] }] }],
  ['a build into no system', { addons: [{ ...addon, steps: [{ ...addon.steps[3], destination: 'assets' }] }] }],
  ['an unknown kind of step', { addons: [{ ...addon, steps: [{ kind: 'shell' }] }] }],
] as const) {
  test(`a plan with ${title} is refused`, () => {
    const text = JSON.stringify({ ...planBuild([addon], options), ...change });
    assert.throwsWith(
      () => parseBuildPlan(text, 'plan.json'),
      title.startsWith('a version') ? 'PACKAGE_INVALID' : 'MANIFEST_INVALID',
    );
  });
}

test('text that is no JSON is refused by name', () => {
  assert.throwsWith(() => parseBuildPlan('{', 'plan.json'), 'MANIFEST_INVALID', /plan\.json/);
});

test.run();
