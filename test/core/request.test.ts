import { mkdir } from 'node:fs/promises';
import { CurlewError } from '../../src/core/errors.ts';
import { choice, count, flag, path, text, texts } from '../../src/core/field.ts';
import { optionName, parametersOf, requestProblem, request, useCase } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('core/request');

const COPY = request(
  'copy',
  {
    file: path('FILE', 'the file to copy', { operand: true, required: 'specify a file' }),
    mirrors: texts('HOST', 'where to copy it'),
    atMost: count('N', 'concurrent copies'),
    mode: choice(['fast', 'safe'], 'how to copy'),
    force: flag('replace a file'),
    label: text('NAME', 'a name'),
  },
  { all: flag('show everything') },
);

test('a use case gets a request of its fields, and everything else that it takes', async () => {
  const copy = useCase(COPY, async (given, where: string) => [given.file, given.mirrors, where]);
  assert.equal(await copy({ file: 'a', mirrors: ['b'], atMost: 2, force: false, label: undefined }, 'c'), [
    'a',
    ['b'],
    'c',
  ]);
});

for (const [what, given, message, hint] of [
  ['no object', 'a', /^cannot run copy: the request is not an object$/, /^its fields are file, mirrors/],
  ['a list', [], /not an object/, /^its fields/],
  ['a misspelled field', { file: 'a', atmost: 2 }, /unknown field "atmost"/, /^did you mean atMost\?$/],
  ['an unknown field', { file: 'a', sesame: 2 }, /unknown field "sesame"/, /^its fields are file, mirrors/],
  ['an option that only the command has', { file: 'a', all: true }, /unknown field "all"/, /^its fields/],
  ['a field of every object', JSON.parse('{"file": "a", "__proto__": 1}') as unknown, /"__proto__"/, /^its fields/],
  ['no required field', {}, /^cannot run copy: the request has no file$/, /^file: the file to copy$/],
  ['an empty required field', { file: '' }, /^cannot run copy: the request has no file$/, /the file to copy/],
  ['a text for a list', { file: 'a', mirrors: 'b' }, /mirrors: not a list/, /^mirrors: where/],
  ['a list of numbers', { file: 'a', mirrors: ['b', 1] }, /mirrors\[1\]: not a string/, /where/],
  ['a text for a number', { file: 'a', atMost: '2' }, /atMost: not a number/, /concurrent/],
  ['a number that is too small', { file: 'a', atMost: 0 }, /atMost: not a number from 1/, /concurrent/],
  ['a text for a flag', { file: 'a', force: 'yes' }, /force: not true or false/, /replace/],
  ['another choice', { file: 'a', mode: 'slow' }, /mode: not "fast" or "safe"/, /how/],
  ['a text with NUL', { file: 'a\0b' }, /file: contains a NUL character/, /copy/],
] as const) {
  test(`a request is refused with its field and what to do: ${what}`, async () => {
    const copy = useCase(COPY, async () => 'copied');
    const error = await assert.rejectsWith(copy(given as { file: string }), 'USAGE', message);
    assert.match(error.hint ?? '', hint);
  });
}

test('a call that fails by the state of the machine is no bug, and one that may be a mistake of the code stays one', async () => {
  const box = await tree({ 'file.txt': '' });
  const make = (path: string) => useCase(COPY, async () => mkdir(box.at(path)))({ file: 'a' });
  const error = await assert.rejectsWith(make('file.txt/below'), 'FILE_UNUSABLE', /^cannot mkdir .*file\.txt\/below: /);
  assert.match(error.hint ?? '', /a part of the path is a file/);
  await assert.rejectsWith(make('a'.repeat(300)), 'FILE_UNUSABLE', /^cannot mkdir /);
  const missing = await make('missing/below').catch((thrown: unknown) => thrown);
  assert.ok(missing instanceof Error && !(missing instanceof CurlewError));
  for (const [code, said] of [
    ['ENOSPC', 'NO_SPACE'],
    ['EDQUOT', 'NO_SPACE'],
    ['EIO', 'FILE_UNUSABLE'],
    ['EMFILE', 'FILE_UNUSABLE'],
    ['EFBIG', 'FILE_UNUSABLE'],
  ] as const) {
    const thrown = Object.assign(new Error(`${code}: of this machine, write`), { code, errno: -1, syscall: 'write' });
    const failed = useCase(COPY, async () => Promise.reject(thrown));
    const { hint } = await assert.rejectsWith(failed({ file: 'a' }), said, /^cannot write: /);
    assert.ok(hint !== undefined, code);
  }
});

test('a field is an option by its name in words, unless it is an operand', () => {
  assert.equal(['olderThan', 's3PathStyle', 'key'].map(optionName), ['older-than', 's3-path-style', 'key']);
  const { operands, options } = parametersOf(COPY);
  assert.equal(
    [operands, options].map((all) => all.map(([name]) => name)),
    [['file'], ['mirrors', 'at-most', 'mode', 'force', 'label', 'all']],
  );
});

test('a field that is undefined is absent, even one that there is not', () => {
  assert.is(requestProblem(COPY.fields, { file: 'a', sesame: undefined, mode: undefined }), undefined);
});

test.run();
