import { formatChoice, parseChoice, specOfChoice } from '../../../../src/ship/serve/page/choice.ts';
import * as assert from '../../../support/assert.ts';
import { suite } from '../../../support/suite.ts';

const test = suite('ship/serve/page/choice');

const choiceOf = (query: string) => parseChoice(new URLSearchParams(query));

test('the address of a choice has each value with its type, and reads as the same choice', () => {
  const query = '_arch=arm64&flannel=0.28.7&flannel:mtu=1400&flannel:note:text=1400&kurl:nameserver:list=a%0Ab';
  const choice = choiceOf(query);
  assert.equal(
    [...choice.settings].map(([key, fields]) => [key, Object.fromEntries(fields)]),
    [
      ['flannel', { mtu: 1400, note: '1400' }],
      ['kurl', { nameserver: ['a', 'b'] }],
    ],
  );
  assert.equal(choiceOf(formatChoice(choice)), choice);
});

test('settings of an add-on that is not chosen are left out, and an empty version takes an add-on out', () => {
  const choice = choiceOf('flannel=1.0.0&flannel=&flannel:mtu=1400&kubernetes=1.36.1');
  assert.equal([...choice.versions], [['kubernetes', '1.36.1']]);
  assert.is(choice.settings.size, 0);
});

test('an address decides nothing that runs as root, no place of packages and no secret', () => {
  for (const [query, why] of [
    ['a=1.0.0&a:s3Override=https://evil.example', 'only an installer spec can have this setting'],
    ['a=1.0.0&a:password=x', 'a secret must not be part of an address'],
    ['kurl:hostPreflights=x', 'only an installer spec can have this setting'],
    ['a=../x', '../x is not a version'],
    ['%3Cb%3E=1.0.0', 'not the name of an add-on'],
  ] as const) {
    const { message } = assert.throwsWith(() => choiceOf(query), 'USAGE');
    assert.ok(message.endsWith(why), message);
  }
});

test('the same choice has the same id, in any order of its settings', () => {
  const [one, other] = ['flannel:mtu=1400&flannel:podCIDR=10.0.0.0/16', 'flannel:podCIDR=10.0.0.0/16&flannel:mtu=1400'];
  const ids = [one, other].map((query) => specOfChoice(choiceOf(`flannel=0.28.7&${query}`)).id);
  assert.is(ids[0], ids[1]);
});

test.run();
