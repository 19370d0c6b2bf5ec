/** The map of the source: what ARCHITECTURE.md and the README of each room say is there. */
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('the map of the source');
const ROOT = join(import.meta.dirname, '../..');
const read = async (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');
const exists = async (path: string): Promise<boolean> =>
  access(join(ROOT, path)).then(
    () => true,
    () => false,
  );
const map = await read('ARCHITECTURE.md');
const rooms = (await readdir(join(ROOT, 'src'), { withFileTypes: true })).flatMap((one) =>
  one.isDirectory() ? [one.name] : [],
);

test('the table names files that are there', async () => {
  const named = [...map.matchAll(/^\| .* \| \[(\S+)\]/gm)].map(([, path = '']) => path);
  assert.ok(named.length >= 30, String(named.length));
  assert.equal(await missing(named), []);
});

async function missing(paths: readonly string[]): Promise<readonly string[]> {
  const there = await Promise.all(paths.map(exists));
  return paths.filter((_, place) => there[place] !== true);
}

for (const way of map.matchAll(/^`(curlew [\w ]+)`:\n\n((?:\d+\. .*\n)+)/gm)) {
  const [, command = '', list = ''] = way;
  test(`${command} takes the way that is written down`, async () => {
    const steps = [...list.matchAll(/`(\w+)` in \[(\S+)\]/g)].map(([, name = '', path = '']) => ({ name, path }));
    assert.ok(steps.length > 4);
    const above: string[] = [];
    for (const { name, path } of steps) {
      const text = await read(path);
      assert.match(text, new RegExp(`^export (?:async )?(?:function|const) ${name}\\b`, 'm'), `${path} ${name}`);
      if (above.length > 0)
        assert.ok(
          above.some((one) => new RegExp(`\\b${name}\\b`).test(one)),
          `no use of ${name}`,
        );
      above.push(text);
    }
  });
}

test('the four commands are there', () => {
  const commands = [...map.matchAll(/^`(curlew [\w ]+)`:$/gm)].map(([, command]) => command);
  assert.equal(commands, ['curlew build', 'curlew install', 'curlew channel apply', 'curlew fleet apply']);
});

for (const room of rooms) {
  test(`src/${room} says what to read first, in twelve lines`, async () => {
    const text = await read(`src/${room}/README.md`);
    assert.ok(text.split('\n').length <= 13);
    assert.match(text, new RegExp(`^# ${room}\n`));
    assert.match(text, /^Not here: /m);
    const [, first = ''] = /^Read first: (.*)$/m.exec(text) ?? [];
    const named = [...first.matchAll(/`([^`]+)`/g)].map(([, path = '']) => `src/${room}/${path}`);
    assert.equal(await missing(named), []);
  });
}

test('test/support lists each of its files by what one wants', async () => {
  const index = await read('test/support/README.md');
  const files = (await readdir(join(ROOT, 'test/support'), { recursive: true })).filter((path) => path.endsWith('.ts'));
  const named = [...index.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path = '']) => path);
  assert.equal(named.toSorted(), files.toSorted());
});

test.run();
