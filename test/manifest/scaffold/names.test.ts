import * as assert from '../../support/assert.ts';
import { chooseHooks } from '../../../src/manifest/scaffold/new-addon.ts';
import { labelOf, settingName, namesOf } from '../../../src/manifest/scaffold/names.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/names');

test('a name becomes a key of the installer spec', () => {
  assert.is(namesOf('cert-manager', '1.0').specName, 'certManager');
  assert.is(labelOf('a.b_c-'), 'a-b-c');
  assert.is(settingName('web-hook.v2', 'Replicas'), 'webHookV2Replicas');
});

for (const [name, version] of [
  ['Web', '1'],
  ['../web', '1'],
  ['web/1', '1'],
  ['', '1'],
  ['web', '../1'],
  ['web', ''],
  ['web', 'latest'],
  ['web', '1.2.x'],
  ['web', 'template'],
  ['kubectl', '1'],
  ['if', '1'],
  ['log', '1'],
] as const) {
  test(`refused: ${JSON.stringify(`${name} ${version}`)}`, () => {
    assert.throwsWith(() => namesOf(name, version), 'PACKAGE_INVALID');
  });
}

test('hooks are those asked for and the one that installs', () => {
  assert.equal([...chooseHooks(['join,post-init'], { settings: false })], ['install', 'join', 'post_init']);
  assert.equal([...chooseHooks(['join', 'outro'], { settings: true })], ['install', 'join', 'outro']);
  assert.is(chooseHooks(['all'], { settings: false }).size, 10);
  assert.ok(chooseHooks([], { settings: true }).has('pre_init'));
  assert.not.ok(chooseHooks([], { settings: false }).has('pre_init'));
});

test('a hook that is none is refused, with one that is near', () => {
  const error = assert.throwsWith(() => chooseHooks(['joins'], { settings: false }), 'USAGE', /joins/);
  assert.match(error.hint ?? '', /did you mean join/);
});

test.run();
