import { compare } from 'bcryptjs';
import { readFile, stat } from 'node:fs/promises';
import { execa } from 'execa';
import { hookEnv } from '../../../src/steps/node/target.ts';
import { ownProcess } from '../../../src/cli/own-program.ts';
import * as assert from '../../support/assert.ts';
import { MAIN } from '../../support/compiled.ts';
import { kurlTool } from '../../support/kurl-tool.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cli/kurl/tools');

async function call(words: readonly string[], input = ''): Promise<string> {
  return kurlTool(words, { input });
}

test('case 23: yamlutil prints a field as JSON, keys sorted, and refuses one that is not there', async () => {
  await using box = await tree({ 'a.yaml': 'spec:\n  weave: {version: latest}\n  b: {z: 1, a: [{d: 1, c: 2}]}\n' });
  assert.is(await call(['yamlutil', '-j', '-fp', box.at('a.yaml'), '-jf', 'spec.weave']), '{"version":"latest"}\n');
  assert.is(await call(['yamlutil', '-j', '-fp', box.at('a.yaml'), '-jf', 'spec.b']), '{"a":[{"c":2,"d":1}],"z":1}\n');
  for (const field of ['spec.none', 'spec.weave.version.x', '__proto__', 'spec.constructor']) {
    const failing = call(['yamlutil', '-j', '-fp', box.at('a.yaml'), '-jf', field]);
    await assert.rejectsWith(failing, 'SPEC_INVALID', /is not present|not a map/);
  }
});

test('case 23: yamlutil adds a field and appends to a list; parents are made, keys come out sorted', async () => {
  await using box = await tree({ 'a.yaml': 'spec:\n  collectors:\n  - cpu: {}\nkind: X\n' });
  const file = box.at('a.yaml');
  assert.is(await call(['yamlutil', '-a', '-fp', file, '-yp', 'metadata_namespace', '-v', 'default']), '');
  await call(['yamlutil', '-a', '-fp', file, '-yp', 'spec_collectors[]', '-v', 'memory: {}']);
  await call(['yamlutil', '--a=true', '-fp', file, '--yp=spec_analyzers[]', '-v', '1']);
  assert.is(
    await readFile(file, 'utf8'),
    'kind: X\nmetadata:\n  namespace: default\nspec:\n  analyzers:\n    - 1\n  collectors:\n    - cpu: {}\n    - memory: {}\n',
  );
});

test('yamlutil removes a field from every document, and takes text out of one', async () => {
  await using box = await tree({ 'a.yaml': 'data:\n  a: "1"\n  conf: |\n    x\nb: 2\n---\nb: 3\n---\n' });
  const file = box.at('a.yaml');
  await call(['yamlutil', '-r', '-fp', file, '-yp', 'data_a']);
  assert.is(await readFile(file, 'utf8'), 'b: 2\ndata:\n  conf: |\n    x\n---\nb: 3\n');
  assert.is(await call(['yamlutil', '-r', '-yc', 'a: 1\nb: 2', '-yp', 'b']), 'a: 1\n\n');
  await using one = await tree({ 'one.yaml': 'data:\n  config.conf: |\n    y\n' });
  await call(['yamlutil', '-p', '-fp', one.at('one.yaml'), '-yp', 'data_config.conf']);
  assert.is(await readFile(one.at('one.yaml'), 'utf8'), 'y\n');
});

test('yamlutil leaves a file alone that it cannot change', async () => {
  const bomb = `a: &a [x, x]\n${'bcdefghijk'.replaceAll(/./g, (name, at: number) => `${name}: &${name} [*${at === 0 ? 'a' : ('abcdefghijk'[at] ?? '')}, *${'abcdefghijk'[at] ?? ''}, *${'abcdefghijk'[at] ?? ''}]\n`)}`;
  await using box = await tree({
    'list.yaml': '- 1\n',
    'bad.yaml': 'a: [',
    'text.yaml': 'a: text\n',
    'bomb.yaml': bomb,
  });
  for (const [name, path] of [
    ['list.yaml', 'a_b'],
    ['bad.yaml', 'a_b'],
    ['text.yaml', 'a_b'],
    ['text.yaml', 'a_b_c'],
  ] as const) {
    const before = await readFile(box.at(name), 'utf8');
    await assert.rejectsWith(call(['yamlutil', '-a', '-fp', box.at(name), '-yp', path, '-v', '1']), 'SPEC_INVALID');
    assert.is(await readFile(box.at(name), 'utf8'), before);
  }
  let said = '';
  await call(['yamlutil', '-j', '-fp', box.at('bomb.yaml'), '-jf', 'k']).catch((error: unknown) => {
    said = String(error);
  });
  assert.match(said, /alias/);
  await assert.rejectsWith(call(['yamlutil', '-j', '-fp', box.at('none'), '-jf', 'a']), 'NOT_FOUND');
});

test('bcrypt hashes each line of its input', async () => {
  const hashes = (await call(['bcrypt', '--cost=4'], 'first\nsecond\n')).trimEnd().split('\n');
  assert.is(hashes.length, 2);
  assert.ok(await compare('first', hashes[0] ?? ''));
  assert.ok(await compare('second', hashes[1] ?? ''));
  await assert.rejectsWith(call(['bcrypt', '--cost=99'], 'x'), 'USAGE', /from 4 to 31/);
});

test('htpasswd sets the line of one user', async () => {
  await using box = await tree({ users: 'other:x\nkurl:old\n' });
  await call(['htpasswd', '-u', 'kurl', '-p', 'secret word', '-f', box.at('users')]);
  const [other, line = ''] = (await readFile(box.at('users'), 'utf8')).split('\n');
  assert.is(other, 'other:x');
  assert.ok(await compare('secret word', line.replace('kurl:', '')));
  await call(['htpasswd', '-u', 'a', '-p', 'b', '-f', box.at('new')]);
  assert.ok((await stat(box.at('new'))).size > 0);
  await assert.rejectsWith(call(['htpasswd', '-u', 'a:b', '-p', 'b', '-f', box.at('new')]), 'USAGE');
});

test('kurl writes addresses as URLs have them', async () => {
  assert.is(await call(['kurl', 'format-address', '10.0.0.1']), '10.0.0.1\n');
  assert.is(await call(['kurl', 'netutil', 'format-ip-address', 'fd00::1']), '[fd00::1]\n');
});

test('what is not there says which package brings it', async () => {
  for (const words of [
    ['kurl', 'rook', 'flexvolume-to-csi', '--node', 'x'],
    ['pvmigrate'],
    ['docker-config', '-m'],
    ['network'],
    ['toString'],
    [],
  ]) {
    await assert.rejectsWith(
      call(words),
      'UNSUPPORTED',
      /not supported; put kURL's own program into bin of the install folder/,
    );
  }
});

test('flags without value, unknown and missing ones are told', async () => {
  await assert.rejectsWith(call(['yamlutil', '-j', '-fp']), 'USAGE', /-fp requires a value/);
  await assert.rejectsWith(call(['yamlutil', '-x']), 'USAGE', /unknown flag -x/);
  await assert.rejectsWith(call(['yamlutil', '-j']), 'USAGE', /-fp is missing/);
  await assert.rejectsWith(call(['yamlutil', '-fp', '/dev/null']), 'USAGE', /one of -a, -r, -p, -j/);
});

test('hooks call this program by BIN_CURLEW', async () => {
  const { BIN_CURLEW = '' } = hookEnv({}, { env: {}, cwd: '/', ...ownProcess() });
  const words = BIN_CURLEW.replace(/'[^']*'$/, `'${MAIN}'`);
  const { stdout } = await execa('bash', ['-c', `eval "exec ${words} kurl kurl format-address ::1"`]);
  assert.is(stdout, '[::1]');
});

test.run();
