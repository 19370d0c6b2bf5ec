/** docs/concepts.md: its example chooses what the page says, and its hooks are those of a run, in their order. */
import { readFile, writeFile } from 'node:fs/promises';
import { HOOK_NAMES } from '../../src/manifest/hooks.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/concepts-page', { timeoutMs: 60_000 });

const page = await readFile('docs/concepts.md', 'utf8');

test('the channel of the page chooses the versions that the page and its drawing name', async () => {
  const [, name = '', channel = '', lines = ''] =
    /^```sh\ncat >(\S+) <<'EOF'\n(.*?)^EOF\n(.*?)^```$/ms.exec(page) ?? [];
  const drawn = await readFile('docs/drawings/channel.dot', 'utf8');
  await using box = await tree();
  await writeFile(box.at(name), channel);
  const commands = [...lines.matchAll(/^curlew (.*?) +# chooses (\S+)$/gm)];
  assert.is(commands.length, 3);
  for (const [, args = '', version = ''] of commands) {
    const { exitCode, stdout, stderr } = await runCommand(args.split(' '), box.path);
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, `: dns ${version}\n`);
    const [, kubernetes = ''] = /v(\d+\.\d+)\.0$/.exec(args) ?? [];
    const [, entry = ''] = new RegExp(String.raw`(e\d) \[.*label="dns ${version}\\n`).exec(drawn) ?? [];
    const [, cluster = ''] = new RegExp(String.raw`(k\d+) \[.*Kubernetes ${kubernetes}"`).exec(drawn) ?? [];
    assert.match(drawn, `${entry} -> ${cluster} `);
  }
});

test('the hooks of an install are in the order in which a run calls them, on the page and in the drawing', async () => {
  const [, table = ''] = /^\| hook of an install .*?\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, hook = '']) => hook);
  const order = HOOK_NAMES.filter((hook) => !['join', 'pre_remove', 'leave', 'uninstall', 'health'].includes(hook));
  assert.equal(listed, order);
  const drawn = await readFile('docs/drawings/hooks.dot', 'utf8');
  const shown = [...drawn.matchAll(/class=hook, label="(\w+)/g)].map(([, hook = '']) => hook);
  // No run calls health.
  assert.equal(new Set(shown), new Set(HOOK_NAMES.filter((hook) => hook !== 'leave' && hook !== 'health')));
  assert.match(page, /^Outside of runs, .*`health`/m);
});

test.run();
