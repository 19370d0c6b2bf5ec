import { INSTALL, type InstallRequest } from '../../src/app/install.ts';
import { commandOf, parseCommand } from '../../src/app/node/saved-command.ts';
import { RESET } from '../../src/app/reset.ts';
import { ROLLBACK } from '../../src/app/rollback.ts';
import { UNINSTALL } from '../../src/app/uninstall.ts';
import { RUN_OPTIONS } from '../../src/cli/node-options.ts';
import { install } from '../../src/cli/commands/install.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/saved-command');

const KEPT = { name: 'install', cwd: '/home/me', installer: 'spec' };

test('a request comes back from its JSON as it was, but for its plan', () => {
  const request = {
    flags: ['ha'],
    bundle: 'b.tar.gz',
    set: ['a.b=c'],
    root: 'r',
    yes: true,
    preflights: 'ignore',
  } as const;
  const asked: InstallRequest = { kind: 'install', plan: 'plan.json', installerText: 'old', ...request };
  const json = JSON.stringify(commandOf({ ...KEPT, request: asked }, INSTALL));
  assert.equal(parseCommand(JSON.parse(json), INSTALL), { ...KEPT, request });
});

test('every option of a run can be kept', () => {
  const own = ['dry-run', 'out', 'force', 'plan'];
  const names = Object.keys(RUN_OPTIONS).filter((name) => !own.includes(name));
  const { options } = readArguments(install, []);
  const { request } = commandOf({ ...KEPT, request: options as unknown as InstallRequest }, INSTALL);
  assert.is(Object.keys(request).length, names.length);
});

test('what former versions kept, options by their names, is the same request', () => {
  const options = { 'install-dir': ['/opt'], from: ['a', 'b'], 'hook-timeout': ['30m'], unconfined: true };
  assert.equal(parseCommand({ ...KEPT, operands: ['ha'], options }, INSTALL), {
    ...KEPT,
    request: { installDir: '/opt', from: ['a', 'b'], hookTimeout: '30m', unconfined: true, flags: ['ha'] },
  });
  const bare = { cwd: '/', options: {} };
  assert.equal(parseCommand({ ...bare, name: 'rollback', operands: ['aaa'] }, ROLLBACK)?.request, { addon: 'aaa' });
  assert.equal(parseCommand({ ...bare, name: 'uninstall', operands: ['a', 'b'] }, UNINSTALL)?.request, {
    addons: ['a', 'b'],
  });
  assert.equal(
    parseCommand({ ...bare, name: 'reset', operands: [], options: { 'keep-going': true } }, RESET)?.request,
    {
      keepGoing: true,
    },
  );
});

for (const [what, kept] of Object.entries({
  'no object': ['install'],
  'neither form': KEPT,
  'an unknown field': { ...KEPT, request: { sesame: 'open' } },
  'a field of every object': { ...KEPT, request: JSON.parse('{"__proto__": "x"}') as unknown },
  'a text for a flag': { ...KEPT, request: { yes: 'true' } },
  'a text for a list': { ...KEPT, request: { set: 'a.b=c' } },
  'a list for a text': { ...KEPT, request: { root: ['/tmp/r'] } },
  'a list of anything': { ...KEPT, request: { set: [1] } },
  'a text that no path is': { ...KEPT, request: { root: '/tmp\0' } },
  'a choice that there is not': { ...KEPT, request: { preflights: 'perhaps' } },
  'a relative folder': { ...KEPT, cwd: '.', request: {} },
  'a spec that is no text': { ...KEPT, installer: {}, request: {} },
  'an unknown option': { ...KEPT, operands: [], options: { sesame: true } },
  'a text given twice': { ...KEPT, operands: [], options: { root: ['/a', '/b'] } },
  'a flag with a value': { ...KEPT, operands: [], options: { yes: ['no'] } },
  'options without operands': { ...KEPT, options: {} },
})) {
  test(`what is no request is none: ${what}`, () => {
    assert.is(parseCommand(kept, INSTALL), undefined);
  });
}

test('a request about add-ons names some', () => {
  const bare = { ...KEPT, operands: [], options: {} };
  assert.equal([parseCommand(bare, ROLLBACK), parseCommand(bare, UNINSTALL)], [undefined, undefined]);
  assert.is(parseCommand({ ...bare, operands: ['aaa'] }, RESET), undefined);
});

test.run();
