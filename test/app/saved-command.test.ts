import { RESET, ROLLBACK, RUN, UNINSTALL, type InstallRequest } from '../../src/requests/node.ts';
import { savedCommandOf, parseCommand } from '../../src/steps/node/saved-command.ts';
import { command } from '../../src/cli/commands/install.ts';
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
  const json = JSON.stringify(savedCommandOf({ ...KEPT, request: asked }, RUN.fields));
  assert.equal(parseCommand(JSON.parse(json), RUN.fields), { ...KEPT, request });
});

test('every option of a run is kept but those for its plan', () => {
  const given = readArguments(command, []).request;
  const { request } = savedCommandOf({ ...KEPT, request: given }, RUN.fields);
  const left = Object.keys(given).filter((name) => !Object.hasOwn(request, name));
  assert.equal(left, ['plan', 'out', 'force']);
});

test('what former versions kept, options by their names, is the same request', () => {
  const options = { 'install-dir': ['/opt'], from: ['a', 'b'], 'hook-timeout': ['30m'], unconfined: true };
  assert.equal(parseCommand({ ...KEPT, operands: ['ha'], options }, RUN.fields), {
    ...KEPT,
    request: { installDir: '/opt', from: ['a', 'b'], hookTimeout: '30m', unconfined: true, flags: ['ha'] },
  });
  const bare = { cwd: '/', options: {} };
  assert.equal(parseCommand({ ...bare, name: 'rollback', operands: ['aaa'] }, ROLLBACK.fields)?.request, {
    addon: 'aaa',
  });
  assert.equal(parseCommand({ ...bare, name: 'uninstall', operands: ['a', 'b'] }, UNINSTALL.fields)?.request, {
    addons: ['a', 'b'],
  });
  assert.equal(
    parseCommand({ ...bare, name: 'reset', operands: [], options: { 'keep-going': true } }, RESET.fields)?.request,
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
    assert.is(parseCommand(kept, RUN.fields), undefined);
  });
}

test('a request about add-ons names some', () => {
  const bare = { ...KEPT, operands: [], options: {} };
  assert.equal([parseCommand(bare, ROLLBACK.fields), parseCommand(bare, UNINSTALL.fields)], [undefined, undefined]);
  assert.is(parseCommand({ ...bare, operands: ['aaa'] }, RESET.fields), undefined);
});

test.run();
