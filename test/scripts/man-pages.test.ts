/** The man pages have what `--help` has, and are roff without mistakes. */
import { join } from 'node:path';
import { execa } from 'execa';
import { manPages } from '../../scripts/docs/man-pages.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('man pages');

test('each command has a page with all of its options and examples', async () => {
  const pages = await manPages();
  for (const [name, { load }] of COMMANDS) {
    const { of, examples } = await load();
    const page = pages.get(`curlew-${name.replaceAll(' ', '-')}.1`)?.replaceAll('\\-', '-') ?? '';
    for (const [option] of parametersOf(of).options) assert.ok(page.includes(`--${option}`), `${name} --${option}`);
    for (const example of examples) assert.ok(page.includes(example.replaceAll('\\', '\\e')), example);
    assert.ok(
      pages
        .get('curlew.1')
        ?.replaceAll('\\-', '-')
        .includes(`curlew-${name.replaceAll(' ', '-')}`),
      name,
    );
  }
});

test('each family of commands has a page that lists them', async () => {
  const pages = await manPages();
  const families = [...COMMANDS.keys()].flatMap((name) => (name.includes(' ') ? name.split(' ', 1) : []));
  const alone = new Set(families.filter((word) => !COMMANDS.has(word)));
  assert.ok(alone.has('fleet'));
  assert.is(pages.size, COMMANDS.size + alone.size + 1);
  for (const [name, { summary }] of COMMANDS) {
    const [word = '', second] = name.split(' ');
    if (second === undefined || !alone.has(word)) continue;
    const page = pages.get(`curlew-${word}.1`)?.replaceAll('\\-', '-') ?? '';
    for (const text of [name, summary, `curlew-${word}-${second}`]) assert.ok(page.includes(text), text);
  }
});

if ((await execa('groff', ['--version'], { reject: false })).exitCode === 0) {
  test('groff has no warning about any page', async () => {
    const pages = await manPages();
    await using box = await tree(Object.fromEntries(pages));
    const files = [...pages.keys()].map((name) => join(box.path, name));
    const { stdout, stderr } = await execa('groff', ['-man', '-Tutf8', '-ww', '-z', ...files], { all: false });
    assert.is(`${stdout}${stderr}`, '');
  });
} else {
  test.skip('groff has no warning about any page', 'groff is not installed');
}

test.run();
