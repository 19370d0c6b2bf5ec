import { parseInstaller } from '../../src/spec/parse.ts';
import { withSettings } from '../../src/spec/set.ts';
import * as assert from '../support/assert.ts';
import { specOf } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';

const test = suite('settings on top of a spec');

function given(...words: readonly string[]): unknown {
  const { installer } = parseInstaller('spec', `${specOf([{ name: 'aaa', version: '1' }])}    size: 3\n  kurl: {}\n`);
  if (installer === undefined) throw new Error('not parsed');
  const { addons, sections } = withSettings(installer, words);
  return { ...addons[0]?.settings, ...sections[0]?.settings };
}

test('they are added or take the place of those of the spec, the last one wins', () => {
  assert.equal(given('aaa.size=4', 'aaa.on=true', 'aaa.text=a=b c', 'kurl.airgap=false', 'aaa.size=005'), {
    size: '005',
    on: true,
    text: 'a=b c',
    airgap: false,
  });
});

test('a name that the spec does not have, and a word that is no setting, are refused without the value', () => {
  assert.throwsWith(() => given('aab.size=secret'), 'USAGE', /^--set aab\.size: the spec has no aab$/);
  for (const word of ['secret', 'aaa=secret', 'aaa.version=secret', 'aaa.x.y=secret']) {
    const error = assert.throwsWith(() => given(word), 'USAGE');
    if (word === 'aaa.version=secret') assert.match(error.message, /^--set aaa\.version: it selects a package/);
    if (word !== 'secret') assert.not.match(error.message, 'secret');
  }
});

test.run();
