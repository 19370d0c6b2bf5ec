/** Commands on a cluster whose kubeconfig leads nowhere. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew, startCurlew } from '../support/curlew.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/channel-kubeconfig', { timeoutMs: 60_000 });

test('a kubeconfig without a current context is an error at once', async () => {
  await using box = await tree();
  const text = kubeconfigText('https://127.0.0.1:1', {}, {}).replace('"current-context":"test"', '"x":0');
  await writeFile(box.at('conf'), text);
  const began = performance.now();
  const { exitCode, stderr } = await curlew(['channel', 'status', '--kubeconfig', 'conf'], { cwd: box.path });
  assert.is(exitCode, 33);
  assert.match(stderr, /no kubeconfig names a current context[^]*current-context/);
  assert.ok(performance.now() - began < 15_000);
});

test('a proxy that is not there is named while it is tried again', async () => {
  await using box = await tree();
  await writeFile(box.at('conf'), kubeconfigText('https://10.0.0.1:6443', {}, { 'proxy-url': 'http://127.0.0.1:1' }));
  const child = startCurlew(['channel', 'status', '--kubeconfig', 'conf'], { cwd: box.path });
  const [text] = (await once(child.stderr, 'data')) as [Buffer];
  assert.match(String(text), /^https:\/\/10\.0\.0\.1:6443: trying to .*: .*127\.0\.0\.1:1.*/);
  child.kill('SIGINT');
  assert.is((await child).exitCode, 130);
});

test.run();
