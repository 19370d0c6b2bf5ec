/** The channel of docs/channels.md, and its table of fields. */
import { readFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/channels-page', { timeoutMs: 60_000 });

const page = await readFile('docs/channels.md', 'utf8');
const [, example = ''] = /^```yaml\n(apiVersion: fleet\.curlew\.dev.*?)^```$/ms.exec(page) ?? [];
const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dns\ndata:\n  zone: example.com\n';

test('the channel of the page has no mistake, and its hash is that of its manifest', async () => {
  await using box = await tree({ 'c.yaml': example, 'dns/1.11.1.yaml': manifest, 'dns/1.12.0.yaml': manifest });
  const { exitCode, stdout } = await runCommand(['channel', 'check', 'c.yaml'], box.path);
  assert.is(exitCode, 0, stdout);
  assert.match(stdout, /^1 channel, 2 add-ons, 3 alternatives, 0 errors, 1 warning$/m);
  const words = ['channel', 'explain', 'dns', 'c.yaml', '--kubernetes', 'v1.32.0'];
  assert.match((await runCommand(words, box.path)).stdout, /^\* +1\.12\.0 /m);
});

test('the table of the page has each field of an entry', async () => {
  const [, table = ''] = /^\| field of an entry .*?\n\|[ |-]+\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const fields = table.split('\n').flatMap((row) => /^\| `(\w+)`/.exec(row)?.[1] ?? []);
  await using box = await tree({ 'c.yaml': example.replace('drift: Revert', 'unknown: 1') });
  const { stdout } = await runCommand(['channel', 'check', 'c.yaml'], box.path);
  const [, known = ''] = /hint: known: (.*)$/m.exec(stdout) ?? [];
  assert.equal(fields.toSorted(), known.split(', ').toSorted());
});

test.run();
